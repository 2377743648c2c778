package deploy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rightOf gives the action that a part of a request to AWS needs, by the part's Go type.
var rightOf = map[string]string{
	"dynamodb.GetItemInput":      "dynamodb:GetItem",
	"dynamodb.BatchGetItemInput": "dynamodb:BatchGetItem",
	"dynamodb.QueryInput":        "dynamodb:Query",
	"dynamodb.ScanInput":         "", // the operator's, after a restore
	"dynamodb.PutItemInput":      "dynamodb:PutItem",
	"dynamodb.UpdateItemInput":   "dynamodb:UpdateItem",
	"dynamodb.DeleteItemInput":   "dynamodb:DeleteItem",
	// A transaction needs what its members need; there is no action of its own.
	"dynamodb.TransactWriteItemsInput": "",
	"types.Put":                        "dynamodb:PutItem",
	"types.Update":                     "dynamodb:UpdateItem",
	"types.Delete":                     "dynamodb:DeleteItem",
	"types.ConditionCheck":             "dynamodb:ConditionCheckItem",
	// A batch needs the action of its single form.
	"sqs.SendMessageBatchInput":        "sqs:SendMessage",
	"sqs.SendMessageInput":             "sqs:SendMessage",
	"sqs.ChangeMessageVisibilityInput": "sqs:ChangeMessageVisibility",
	"sqs.ReceiveMessageInput":          "", // the operator's: colophon redrive
	"sqs.DeleteMessageInput":           "", // the operator's: colophon redrive
	"kms.EncryptInput":                 "kms:Encrypt",
	"kms.DecryptInput":                 "kms:Decrypt",
	"kms.ReEncryptInput":               "", // the operator's: colophon destination reseal
}

func TestTheCodeCallsWhatTheRolesAreJudgedBy(t *testing.T) {
	t.Parallel()
	written := map[string]string{} // action to a place in the code
	for part, place := range partsOfRequests(t) {
		action, known := rightOf[part]
		if !known {
			t.Errorf("%s: %s is asked for, and no role is judged by it", place, part)
		}
		written[action] = place
	}
	var judged []string
	for _, function := range functionIDs {
		for _, c := range calls[function] {
			for _, r := range c.needs {
				if !strings.HasSuffix(c.does, "(Lambda)") {
					judged = append(judged, r.action)
				}
			}
		}
	}
	for action, place := range written {
		if action != "" && !slices.Contains(judged, action) {
			t.Errorf("%s: the code needs %s, and no role is judged by it", place, action)
		}
	}
	for _, action := range judged {
		if written[action] == "" {
			t.Errorf("roles are judged by %s, which the code does not need", action)
		}
	}
}

// partsOfRequests gives the types that requests to AWS are made of in our own packages that the functions consist of,
// each with a place where it is made.
func partsOfRequests(t *testing.T) map[string]string {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`, "../functions/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	files := token.NewFileSet()
	for path := range strings.FieldsSeq(string(out)) {
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		services := map[string]bool{} // imported names: a service's, and types for its types
		for _, i := range file.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			if strings.HasPrefix(imported, "github.com/aws/aws-sdk-go-v2/service/") {
				services[imported[strings.LastIndex(imported, "/")+1:]] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, is := n.(*ast.CompositeLit); is {
				if of, is := literal.Type.(*ast.SelectorExpr); is {
					from, _ := of.X.(*ast.Ident)
					if part := fmt.Sprintf("%v.%s", from, of.Sel.Name); services[from.String()] && isPartOfRequest(part) {
						found[part] = files.Position(n.Pos()).String()
					}
				}
			}
			return true
		})
	}
	return found
}

func isPartOfRequest(part string) bool {
	_, known := rightOf[part]
	return known || strings.HasSuffix(part, "Input")
}
