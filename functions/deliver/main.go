// Command deliver answers the queues' messages: it sends announcements to their
// destinations.
package main

import (
	"log"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/function/deliver"
	"colophon/internal/runtime"
)

func main() {
	environment, err := runtime.ReadDeliver(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	main, err := deliver.New(deliver.Config{
		Environment: environment, Getenv: os.Getenv, RuntimeAPI: os.Getenv("AWS_LAMBDA_RUNTIME_API"),
		Log: runtime.NewLog(), Stdout: os.Stdout, Clock: time.Now,
	})
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(main.Handle)
}
