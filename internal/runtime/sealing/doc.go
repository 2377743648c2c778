// Package sealing encrypts what belongs to one destination and opens it again,
// under the stack's KMS key.
//
// It is a part of I6: the key's encryption context is the destination, so what
// was sealed for one cannot be opened for another, and whoever seals ([Sealer],
// the api) is another than who opens ([Opener], deliver): their roles allow
// encrypting and decrypting, each one of the two. Plaintext is kept in memory
// only, for five minutes, so that a revoked grant ends soon and a destination's
// attempts do not each cost a call.
package sealing
