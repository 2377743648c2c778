// Sweep finds deliveries that are due and that nobody rang for, and puts their
// keys on the queue: see internal/outbox.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/function/sweep"
)

func main() {
	sweeper, err := sweep.New(os.Getenv, os.Stdout, nil)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(sweeper.Handle)
}
