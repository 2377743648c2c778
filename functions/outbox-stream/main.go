// Outbox-stream puts the key of each delivery that rings in the table's stream
// on the queue: see internal/outbox.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/function/outboxstream"
)

func main() {
	forwarder, err := outboxstream.New(os.Getenv, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(forwarder.Handle)
}
