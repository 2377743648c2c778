// Package egress says what may be called, and is the one way out of this program to a receiver.
//
// Invariant I6 (connections are opened to public addresses only, judged at the moment of connecting) lives here:
// ParseTarget judges what is registered, dialer.lookup every answer of the resolver before anything is opened, and
// dialer.control each socket once more. AllowLoopback is the only exception, and the runtime API stays closed to it.
// Of I3 it holds the sender's half: every write asks the wall clock (conn.Write), and a socket that is closed before
// the status has arrived is reset, so that bytes the kernel still holds are thrown away (Client.attempt).
//
// An attempt is one connection and one request, written at once by net/http's request writer and answered through its
// response reader; http.Transport is not used. A Transport reads an answer that comes before the request as a fault of
// its pool, may send a request twice, keeps goroutines that outlive the call, and tells faults apart only by texts that
// hold the receiver's bytes. So there is no pool, proxy, cookie, redirect, decompression or replay to switch off.
//
// A Result is made of this package's own words, numbers and times. Which outcome class it means, what is tried again
// and what is stored is left to the delivery package; the bytes of a request are made by the webhook package.
package egress
