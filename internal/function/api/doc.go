// Package api puts the api function together: the JSON API, the services behind
// it and the store below them.
//
// It promises that what tests and benches build is what is deployed: functions/api
// only reads the environment. It is I6's half that seals: nothing here can open a
// destination's secrets. The other invariants live in the packages it joins.
package api
