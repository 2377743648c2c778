// Package store keeps Colophon's items in two DynamoDB tables and is the only
// package that talks to DynamoDB.
//
// It promises that every conditional write is a value ([Write], [Condition],
// [Change]) which is rendered to DynamoDB's expressions in one place and can be
// evaluated without DynamoDB in the same place: what the simulator judges is
// what the table judges (the conformance suite in storetest holds both to it).
//
// I1 and I2 live here as conditions: [Deliveries.Claim] writes the slot only
// under the version that was read, [Deliveries.Record] writes an outcome only
// under the token in the slot and never over a terminal state. I4 lives in the
// items: body and id are written once, at publish, and no update names them.
//
// It leaves to others what should be written: internal/content decides about
// projects, documents and releases, internal/delivery about deliveries.
package store
