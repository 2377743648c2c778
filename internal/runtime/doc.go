// Package runtime is what the functions' mains share: their configuration, read
// from the environment and judged as a whole, the AWS configuration, logs and
// metrics. (Sealing stands in a package of its own, so that a function without
// it does not carry KMS.)
//
// It promises that a function with a wrong environment does not start and says
// all that is wrong at once; and, for I6, that a production stage with loopback
// receivers allowed does not start. One attempt of an AWS call ends within 2 s.
//
// It leaves the making of clients to whoever uses them: a client in a wide
// interface, or in a package that all import, makes every function larger.
package runtime
