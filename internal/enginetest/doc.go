// Package enginetest gives tests a real DynamoDB-compatible engine: dynoxide, as
// a process of its own, with tables as the template makes them.
//
// It promises one engine for a test binary, started when it is first asked for
// and ended with the binary ([Main]), even where the binary is killed (Linux);
// fresh tables under random names for each test, so that tests run side by side;
// and one clear line where the engine is not installed.
//
// What dynoxide cannot show (conflicts between transactions, throttling, time-outs)
// tests put in themselves, around the store's Engine.
package enginetest
