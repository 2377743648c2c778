package checked_test

import (
	"flag"
	"go/ast"
	"go/types"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/yaml"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
	"colophon/internal/webhook"
)

// namesPage lists every name that is stored or that others use.
const namesPage = "../names.golden"

var update = flag.Bool("update", false, "write docs/names.golden anew")

const namesHead = `# Every name that is stored or that others use: tables, queues, the API, the command, the template, logs and metrics.
# Made from the sources by a test. What is stored outlives a deployment, and others depend on what they see: a line that
# goes or changes needs a way over for both. After a change that is meant:
#
#	go test ./docs/checked -run TestEachStoredAndSpokenNameIsListed -update
#
`

func TestEachStoredAndSpokenNameIsListed(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	add := func(kind, name string) {
		if name != "" {
			got[kind+" "+strings.Join(strings.Fields(name), " ")] = true
		}
	}
	s := readSource(t)
	itemNames(t, s, add)
	valueNames(t, s, add)
	sourceNames(t, s, add)
	messageNames(t, add)
	templateNames(t, add)
	apiNames(t, add)
	commandNames(t, add)
	environmentNames(t, add)

	lines := slices.Sorted(maps.Keys(got))
	if *update {
		must(t, os.WriteFile(namesPage, []byte(namesHead+strings.Join(lines, "\n")+"\n"), 0o644))
		return
	}
	listed := map[string]bool{}
	for line := range strings.Lines(readPage(t, namesPage)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			listed[line] = true
		}
	}
	differ := false
	for _, line := range slices.Sorted(maps.Keys(listed)) {
		if !got[line] {
			differ = true
			t.Errorf("gone, or changed into a new one: %s", line)
		}
	}
	for _, line := range lines {
		if !listed[line] {
			differ = true
			t.Errorf("new: %s", line)
		}
	}
	if differ {
		t.Error("If this is meant, with a way over for what is stored and for those who use it:\n" +
			"go test ./docs/checked -run TestEachStoredAndSpokenNameIsListed -update")
	}
	kinds := map[string]int{}
	for _, line := range lines {
		kind, _, _ := strings.Cut(line, " ")
		kinds[kind]++
	}
	for _, kind := range []string{
		"alarm", "api", "attribute", "code", "command", "header", "index", "json", "key", "log", "message", "metric",
		"output", "parameter", "prefix", "value", "variable",
	} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was found: the source that they are read from has moved", kind)
		}
	}
}

// valueNames are values that are stored or answered, by what they are of.
func valueNames(t *testing.T, s *source, add func(kind, name string)) {
	t.Helper()
	for what, of := range map[string]struct{ path, name string }{
		"status of a delivery":             {"internal/delivery", "Status"},
		"reason of an end":                 {"internal/delivery", "Reason"},
		"class of an attempt":              {"internal/delivery", "Class"},
		"writer of an attempt":             {"internal/delivery", "Writer"},
		"what a receiver got":              {"internal/delivery", "Receipt"},
		"state of a destination":           {"internal/delivery", "SlotState"},
		"who paused":                       {"internal/delivery", "PausedBy"},
		"kind of a test":                   {"internal/delivery", "TestKind"},
		"state of a test":                  {"internal/delivery", "TestState"},
		"check of a doctor":                {"internal/delivery", "Check"},
		"verdict of a doctor":              {"internal/delivery", "Verdict"},
		"purpose in an encryption context": {"internal/delivery", "Purpose"},
		"role of a token":                  {"internal/access", "Role"},
		"environment of a stack":           {"internal/runtime", "Stage"},
	} {
		values := s.textsOf("colophon/"+of.path, of.name)
		if len(values) < 2 {
			t.Errorf("found %d values for %s: has %s.%s another name now?", len(values), what, of.path, of.name)
		}
		for _, value := range values {
			if value != "" {
				add("value", what+": "+value)
			}
		}
	}
	for _, code := range s.textsOf("colophon/internal/failure", "Code") {
		add("code", code)
	}
}

var (
	idPrefix = regexp.MustCompile(`^[a-z]{3,6}_$`)
	variable = regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+_?$`)
	urn      = regexp.MustCompile(`^urn:`)
	problem  = regexp.MustCompile(`^[a-z]+(?:-[a-z]+)*$`)
)

// sourceNames are names that the code speaks, found by what they are used for.
func sourceNames(t *testing.T, s *source, add func(kind, name string)) {
	t.Helper()
	s.each(func(p *types.Package, n ast.Node) {
		if e, ok := n.(ast.Expr); ok && types.Identical(types.Default(typeOf(s, e)), types.Typ[types.String]) {
			switch text, _ := s.text(e); {
			case idPrefix.MatchString(text):
				add("prefix", text)
			case urn.MatchString(text):
				add("prefix", text)
			case variable.MatchString(text):
				add("variable", text)
			}
		}
		for _, key := range s.mapKeys(n, "float64") {
			add("metric", key)
		}
		for _, key := range s.mapKeys(n, "github.com/aws/aws-sdk-go-v2/service/sqs/types.MessageAttributeValue") {
			add("message", "attribute "+key)
		}
		if strings.HasSuffix(p.Path(), "/sealing") {
			for _, key := range s.mapKeys(n, "string") {
				add("key", "encryption context "+key)
			}
		}
		if p.Path() == "colophon/internal/httpapi" {
			problemCodes(s, n, add)
		}
		call, path, receiver, name := s.called(n)
		switch {
		case call == nil:
		case path == "log/slog" && receiver == "" && len(call.Args) == 2:
			key, ok := s.text(call.Args[0])
			if !ok {
				t.Errorf("%s: a log field's name is not constant", s.at(n))
			}
			add("log", "field "+key)
		case path == "log/slog" && receiver == "Logger" && name != "With":
			logMessage(t, s, call, add)
		case path == "net/http" && receiver == "Header", path == "net/textproto" && receiver == "MIMEHeader":
			if len(call.Args) > 0 {
				key, _ := s.text(call.Args[0])
				add("header", http.CanonicalHeaderKey(key))
			}
		case path == "encoding/json" && (name == "Marshal" || name == "Unmarshal" || name == "Decode"):
			argument := call.Args[len(call.Args)-1]
			jsonNames(s.info.Types[argument].Type, "", func(name string) { add("json", filepath.Base(p.Path())+" "+name) })
			for _, key := range s.mapKeys(argument, "string") {
				add("json", filepath.Base(p.Path())+" "+key)
			}
		}
	})
}

func typeOf(s *source, e ast.Expr) types.Type {
	if known := s.info.Types[e].Type; known != nil {
		return known
	}
	return types.Typ[types.Invalid]
}

// problemCodes are the keys of a map to structs: the table of problems.
func problemCodes(s *source, n ast.Node, add func(kind, name string)) {
	literal, ok := n.(*ast.CompositeLit)
	if !ok {
		return
	}
	m, ok := s.info.Types[literal].Type.Underlying().(*types.Map)
	if !ok {
		return
	}
	of, ok := m.Elem().Underlying().(*types.Struct)
	if !ok || of.NumFields() == 0 || of.Field(0).Name() != "status" {
		return
	}
	for _, element := range literal.Elts {
		if code, ok := s.text(element.(*ast.KeyValueExpr).Key); ok && problem.MatchString(code) {
			add("code", code)
		}
	}
}

// logMessage adds a log line's message: a constant, or all values of its type.
func logMessage(t *testing.T, s *source, call *ast.CallExpr, add func(kind, name string)) {
	t.Helper()
	for _, argument := range call.Args {
		known := s.info.Types[argument]
		if basic, ok := known.Type.Underlying().(*types.Basic); !ok || basic.Kind() != types.String {
			continue
		}
		if text, ok := s.text(argument); ok {
			add("log", "message "+text)
			return
		}
		if conversion, ok := argument.(*ast.CallExpr); ok && len(conversion.Args) == 1 {
			if named, ok := s.info.Types[conversion.Args[0]].Type.(*types.Named); ok {
				for _, text := range s.textsOf(named.Obj().Pkg().Path(), named.Obj().Name()) {
					add("log", "message "+text)
				}
				return
			}
		}
	}
	t.Errorf("%s: a log line's message is not constant", s.at(call))
}

// messageNames are the fields of what is put on queues and sent to receivers.
func messageNames(t *testing.T, add func(kind, name string)) {
	t.Helper()
	to := delivery.Destination{Project: "p", ID: "d"}
	for what, m := range map[string]outbox.Message{
		"delivery": {Destination: to, Release: 1, Trace: "t"}, "test": {Destination: to, Test: "t", Trace: "t"},
	} {
		text, err := m.Encode()
		must(t, err)
		for _, field := range fieldsOf(t, text) {
			add("message", what+" "+field)
		}
	}
	project := webhook.Project{ID: "p", Name: "n"}
	release, err := webhook.Release{Project: project, Number: 1, Documents: 1, Message: "m", URL: "u"}.Body(time.Now())
	must(t, err)
	test, err := webhook.Test{Project: project, ID: "t"}.Body(time.Now())
	must(t, err)
	for what, body := range map[string][]byte{"release": release, "test": test} {
		for _, field := range fieldsOf(t, string(body)) {
			add("message", "webhook of a "+what+": "+field)
		}
		add("message", "webhook of a "+what+": type "+regexp.MustCompile(`"type":"([^"]+)"`).FindStringSubmatch(string(body))[1])
	}
	for name := range (webhook.Attempt{ID: "i", Body: release, At: time.Now(), Number: 1, Previous: 1, Secrets: []webhook.Secret{newSecret(t)}}).Headers() {
		add("header", "of a webhook: "+name)
	}
}

// node reads YAML whose tags are CloudFormation's too.
func node(t *testing.T, path string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	must(t, yaml.Unmarshal([]byte(read(t, path)), &document))
	return document.Content[0]
}

// child is a mapping's value, resolved where it is an alias; nil where there is none.
func child(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		var next *yaml.Node
		for key, value := range entries(n) {
			if key == name {
				next = value
			}
		}
		n = next
	}
	return n
}

// entries are a mapping's, with those that it merges.
func entries(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			value := n.Content[i+1]
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			if n.Content[i].Value == "<<" {
				for key, merged := range entries(value) {
					if !yield(key, merged) {
						return
					}
				}
				continue
			}
			if !yield(n.Content[i].Value, value) {
				return
			}
		}
	}
}

func templateNames(t *testing.T, add func(kind, name string)) {
	t.Helper()
	template := node(t, "template.yaml")
	for name := range entries(child(template, "Parameters")) {
		add("parameter", name)
	}
	for name := range entries(child(template, "Outputs")) {
		add("output", name)
	}
	variables := func(n *yaml.Node) {
		for name := range entries(child(n, "Environment", "Variables")) {
			add("variable", name)
		}
	}
	variables(child(template, "Globals", "Function"))
	for name, resource := range entries(child(template, "Resources")) {
		variables(child(resource, "Properties"))
		if kind := child(resource, "Type"); kind != nil && kind.Value == "AWS::CloudWatch::Alarm" {
			add("alarm", name+" "+child(resource, "Properties", "Namespace").Value+" "+child(resource, "Properties", "MetricName").Value)
		}
	}
	add("metric", "namespace "+child(template, "Parameters", "MetricsNamespace", "Default").Value)
	if strings.Contains(read(t, "template.yaml"), "MetricFilter") {
		t.Error("the template has a metric filter: list its metric here")
	}
}

func apiNames(t *testing.T, add func(kind, name string)) {
	t.Helper()
	description := node(t, "api/openapi.yaml")
	resolve := func(n *yaml.Node) *yaml.Node {
		for {
			reference := child(n, "$ref")
			if reference == nil {
				return n
			}
			n = child(description, strings.Split(strings.TrimPrefix(reference.Value, "#/"), "/")...)
		}
	}
	parameters := func(prefix string, n *yaml.Node) {
		if n == nil {
			return
		}
		for _, one := range n.Content {
			one = resolve(one)
			add("api", prefix+" "+child(one, "in").Value+" "+child(one, "name").Value)
		}
	}
	for path, item := range entries(child(description, "paths")) {
		parameters(path, child(item, "parameters"))
		for method, operation := range entries(item) {
			if id := child(operation, "operationId"); id != nil {
				at := strings.ToUpper(method) + " " + path
				add("api", at+" "+id.Value)
				parameters(at, child(operation, "parameters"))
				for status, response := range entries(child(operation, "responses")) {
					add("api", at+" response "+status)
					for header := range entries(child(resolve(response), "headers")) {
						add("api", at+" response header "+header)
					}
				}
			}
		}
	}
	var schema func(prefix string, n *yaml.Node)
	schema = func(prefix string, n *yaml.Node) {
		if n == nil || child(n, "$ref") != nil { // what is referred to is listed under its own name
			return
		}
		for name, property := range entries(child(n, "properties")) {
			add("api", "field "+prefix+"."+name)
			schema(prefix+"."+name, property)
		}
		if values := child(n, "enum"); values != nil {
			for _, value := range values.Content {
				add("api", "value "+prefix+" "+value.Value)
			}
		}
		schema(prefix+"[]", child(n, "items"))
		schema(prefix+".*", child(n, "additionalProperties"))
		for _, of := range []string{"allOf", "anyOf", "oneOf"} {
			if parts := child(n, of); parts != nil {
				for _, part := range parts.Content {
					schema(prefix, part)
				}
			}
		}
	}
	for name, n := range entries(child(description, "components", "schemas")) {
		schema(name, n)
	}
	for name := range entries(child(description, "components", "securitySchemes")) {
		add("api", "security "+name)
	}
}

// commandNames are what the command itself says that it takes.
func commandNames(t *testing.T, add func(kind, name string)) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "colophon")
	build := exec.Command("go", "build", "-o", binary, "./cmd/colophon")
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	help := func(words []string) string {
		out, err := exec.Command(binary, append(words, "--help")...).Output()
		must(t, err)
		return string(out)
	}
	var walk func(words []string)
	walk = func(words []string) {
		text := help(words)
		at := strings.Join(append([]string{"colophon"}, words...), " ")
		add("command", at)
		if usage := regexp.MustCompile(`(?m)^Usage:\n  (colophon.*?)(?: \[flags\])?$`).FindStringSubmatch(text); usage != nil {
			add("command", usage[1])
		}
		_, flags, _ := strings.Cut(text, "\nFlags:\n")
		flags, _, _ = strings.Cut(flags, "\nGlobal Flags:\n")
		for _, found := range regexp.MustCompile(`(?m)^ {2,6}(?:(-\w), )?(--[\w-]+)`).FindAllStringSubmatch(flags, -1) {
			if found[1] != "" && found[1] != "-h" {
				add("command", at+" "+found[1]+" "+found[2])
			}
			if found[2] != "--help" {
				add("command", at+" "+found[2])
			}
		}
		out, err := exec.Command(binary, append(append([]string{"__completeNoDesc"}, words...), "")...).Output()
		must(t, err)
		for name := range strings.Lines(string(out)) {
			name = strings.TrimSpace(name)
			if regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(name) && strings.Contains(text, "\n  "+name+" ") && !slices.Contains(words, "completion") && name != "help" {
				walk(append(slices.Clone(words), name))
			}
		}
	}
	walk(nil)
}

var ownVariable = regexp.MustCompile(`\bCOLOPHON_[A-Z_]*[A-Z]\b`)

// environmentNames are the variables that make and the local stack read.
func environmentNames(t *testing.T, add func(kind, name string)) {
	t.Helper()
	for _, folder := range []string{"Makefile", ".ci", "localstack"} {
		must(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && (name == "tests" || name == "testdata" || name == "__pycache__" || strings.HasPrefix(name, ".") && name != ".ci"):
				return fs.SkipDir // compiled modules and caches have other bytes right after a name
			case !entry.Type().IsRegular(), strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, found := range ownVariable.FindAllString(string(text), -1) {
				add("variable", found)
			}
			return err
		}))
	}
}
