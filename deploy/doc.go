// Package deploy holds the tests of template.yaml: what the design asks of AWS
// and no local engine can show is held here, on the template as the SAM
// translator deploys it.
//
// It promises that each property the delivery rests on is there (rules_test.go),
// that taking any of them away is noticed (mutation_test.go), and that each
// function's role is granted the calls that its code makes and nothing else
// (roles_test.go, judged by deploy/iam). I6's two refusals stand among those:
// no other role than the api's reads content, and the api can't open what it
// sealed.
//
// It leaves to the local stack's tests what runs, and to cfn-lint what is well
// formed.
package deploy
