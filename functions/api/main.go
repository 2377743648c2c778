// Command api answers the JSON API behind API Gateway.
package main

import (
	"log"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/function/api"
	"colophon/internal/runtime"
)

func main() {
	environment, err := runtime.ReadAPI(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	main, err := api.New(api.Config{Environment: environment, Getenv: os.Getenv, Log: runtime.NewLog(), Clock: time.Now})
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(main.Handle)
}
