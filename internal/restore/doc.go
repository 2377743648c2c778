// Package restore prepares two tables that DynamoDB restored for the stack that
// is to use them.
//
// It promises that afterwards they are as template.yaml would have made them:
// what a restore leaves out is set (the delivery table's stream, expiry,
// point-in-time recovery, protection against deletion, tags), and no token that
// the restore brought back is accepted. It looks before it writes, so it can be
// run again after a failure, and a second run changes nothing. A table that is
// not one of Colophon's, or is the stack's own, it refuses without a change.
//
// It leaves to the operator to stop the functions first and to deploy the
// parameters afterwards, and to internal/store what a token's item looks like.
package restore
