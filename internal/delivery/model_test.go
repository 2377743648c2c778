package delivery_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const modelFolder = "../../docs/model"

func TestEachStepOfTheModelIsAFunctionThatIsThere(t *testing.T) {
	t.Parallel()
	rows := modelTable(t, "step in `slot.pml`")
	files := map[string][]string{}
	for _, row := range rows {
		step, functions, file := row[0], quoted(row[1]), row[2]
		if files[file] == nil {
			files[file] = functionsOf(t, filepath.Join("../..", file))
		}
		if len(functions) == 0 {
			t.Errorf("%s: no function", step)
		}
		for _, function := range functions {
			if !slices.Contains(files[file], function) {
				t.Errorf("%s: %s has no function %s", step, file, function)
			}
		}
	}
	if len(rows) < 30 {
		t.Errorf("%d steps: the table was not found", len(rows))
	}
}

func TestTheModelHasTheRowsOfDecideInTheirOrder(t *testing.T) {
	t.Parallel()
	var told []string
	for _, row := range modelTable(t, "#") {
		told = append(told, quoted(row[2])...)
	}
	file := parse(t, "decide.go")
	var decided, decisions []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		switch {
		case ok && f.Name.Name == "decision":
			decisions = append(decisions, typeName(f.Recv.List[0].Type))
		case ok && f.Name.Name == "Decide":
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok {
					decided = append(decided, typeName(r.Results[0].(*ast.CompositeLit).Type))
				}
				return true
			})
		}
	}
	if !slices.Equal(told, decided) {
		t.Errorf("Decide returns, in this order,\n%v\nand the model's rows say\n%v", decided, told)
	}
	for _, decision := range decisions {
		if !slices.Contains(told, decision) {
			t.Errorf("no row of the model is about %s", decision)
		}
	}
	if len(decisions) == 0 || len(decided) == 0 {
		t.Error("decide.go was not understood")
	}
}

func TestTheModelHasWhatAPersonIsRefusedInItsOrder(t *testing.T) {
	t.Parallel()
	file := parse(t, "../destination/redeliver.go")
	for _, function := range []string{"requeue", "advance"} {
		var told, refused []string
		for _, row := range modelTable(t, "`"+function+"` refuses by") {
			told = append(told, quoted(row[0])...)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
				refused = refusals(f)
			}
		}
		if !slices.Equal(told, refused) {
			t.Errorf("%s refuses, in this order, by\n%v\nand the model's rows say\n%v", function, refused, told)
		}
	}
}

// refusals names what a function calls that can refuse; of refuse, the code that it gives.
func refusals(f *ast.FuncDecl) []string {
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch name, _ := call.Fun.(*ast.Ident); {
		case name == nil, name.Name == "sends": // a method; a question
		case name.Name == "refuse":
			names = append(names, call.Args[0].(*ast.Ident).Name)
		default:
			names = append(names, name.Name)
		}
		return true
	})
	return names
}

func TestTheModelsConditionsAndMistakesAreExplained(t *testing.T) {
	t.Parallel()
	readme := modelFile(t, "README.md")
	_, conditions, _ := strings.Cut(modelFile(t, "slot.pml"), "---- the conditions")
	conditions, _, found := strings.Cut(conditions, "---- the rules")
	names := regexp.MustCompile(`(?m)^#ifndef (\w+)$`).FindAllStringSubmatch(conditions, -1)
	if !found || len(names) < 20 {
		t.Fatalf("%d conditions: they were not found", len(names))
	}
	for _, name := range names {
		if !strings.Contains(readme, "`"+name[1]+"`") {
			t.Errorf("README.md does not say what %s is", name[1])
		}
	}
	unasked, _, _ := strings.Cut(readme, "## Mistakes")
	_, unasked, found = strings.Cut(unasked, "**Conditions that no mistake here is about.**")
	if !found {
		t.Error("README.md does not say which conditions no mistake is about")
	}
	check := modelFile(t, "check.sh")
	for _, name := range names {
		refuted := regexp.MustCompile(`(?m)^(?:search|live) +\S+ +refuted.*'` + name[1] + `[ (]`).MatchString(check)
		if refuted == strings.Contains(unasked, "`"+name[1]+"`") {
			t.Errorf("%s: a mistake in check.sh: %v; README.md says the contrary", name[1], refuted)
		}
	}
	var searched, told []string
	for _, s := range regexp.MustCompile(`(?m)^(?:search|live) +(\S+) +refuted`).FindAllStringSubmatch(check, -1) {
		searched = append(searched, s[1])
	}
	for _, row := range modelTable(t, "what is left out or done wrong") {
		told = append(told, quoted(row[1])...)
	}
	slices.Sort(searched)
	slices.Sort(told)
	if !slices.Equal(searched, told) {
		t.Errorf("check.sh looks for the mistakes\n%v\nand README.md tells of\n%v", searched, told)
	}
}

func modelFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(modelFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// modelTable returns the cells of the table whose first column has this heading.
func modelTable(t *testing.T, heading string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for line := range strings.Lines(modelFile(t, "README.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case cells[0] == heading:
			inside = true
		case inside && cells[0] != "---":
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("README.md has no table of %q", heading)
	}
	return rows
}

// quoted returns what stands between backticks.
func quoted(cell string) []string {
	var names []string
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		names = append(names, found[1])
	}
	return names
}

// functionsOf names a file's functions; a method with its receiver's type before it.
func functionsOf(t *testing.T, path string) []string {
	t.Helper()
	names := []string{}
	for _, d := range parse(t, path).Decls {
		f, ok := d.(*ast.FuncDecl)
		switch {
		case ok && f.Recv != nil:
			names = append(names, typeName(f.Recv.List[0].Type)+"."+f.Name.Name)
		case ok:
			names = append(names, f.Name.Name)
		}
	}
	return names
}

func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return "?"
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
