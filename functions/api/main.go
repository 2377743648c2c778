// Api answers the JSON API behind API Gateway: see internal/httpapi.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/function/api"
)

func main() {
	main, err := api.New(os.Getenv, nil)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(main.Handle)
}
