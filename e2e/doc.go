// Package e2e holds the tests of the whole: the deployed template on the local
// stack, through the real gateway, functions, stream and queues, with receivers
// of its own on loopback.
//
// They have the build tag stack and read COLOPHON_STACK, the stack's description
// (.run/<port>/stack.json); "make test" starts a stack with test builds of the
// functions for them. Without one they fail.
package e2e
