// Package leaktest holds one test: that nothing leaks. It runs the four
// functions as they are deployed on a real table engine and a real queue, takes
// them through every path with marked secrets, tokens, addresses and receivers'
// answers, and looks for the marks in all that the system wrote: log lines,
// figures, every call to the tables and every answer of theirs, stream images,
// failed conditions, queue messages, dead letters and API answers.
//
// Each mark must be found where it belongs, so that a search that finds nothing
// is known to look.
package leaktest
