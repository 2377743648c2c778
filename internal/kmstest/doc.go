// Package kmstest is a KMS for tests that holds what is sealed to its encryption
// context, as AWS's does: a value opens under the key and the very context that
// it was sealed under, and under no other. Tests of what is bound to what are
// worth nothing without that, and the emulator that tests use for queues does not
// look at the context.
//
// It promises CreateKey, Encrypt, Decrypt and ReEncrypt with KMS's own error
// types, and leaves out everything else: policies are judged by package deploy
// and on the local stack.
package kmstest
