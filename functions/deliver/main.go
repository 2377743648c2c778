// Deliver answers the queues' messages: it sends announcements to their
// destinations, see internal/delivery.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/function/deliver"
)

func main() {
	consumer, err := deliver.New(os.Getenv, os.Stdout, nil)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(consumer.Handle)
}
