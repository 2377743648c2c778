// Package iam judges IAM policies as AWS does, as far as template.yaml uses
// them, so that what a role may and may not do is proven by evaluation and not
// by reading strings.
//
// It promises the documented order (an explicit deny, else an allow, else
// refused), wildcards and letter case of actions and resources, conditions with
// their set operators and absent keys, and a KMS key's own policy beside the
// caller's. Whatever it does not know (an operator, an element, a policy
// variable) is refused by [Parse]: a policy that can't be judged is not judged.
// testdata/vectors.json holds the documented rules, one a row.
//
// I6 is proven with it, by the tests of package deploy. It leaves to others
// which calls are made, boundaries, session and organization policies, and
// resource policies other than a key's: the template has none.
package iam
