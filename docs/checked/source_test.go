package checked_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// source is the Go source of what runs: of the functions, the command, the client
// and the example, and of every package of this module that they import, without what
// was generated. Types are known, so that a name is found by what it is used for,
// whatever it is called in Go.
type source struct {
	packages map[string]*types.Package // by path
	files    []*ast.File
	inFile   map[*ast.File]*types.Package
	info     *types.Info
	fset     *token.FileSet
}

var sourceOnce = sync.OnceValues(loadSource)

func readSource(t testing.TB) *source {
	t.Helper()
	s, err := sourceOnce()
	must(t, err)
	return s
}

func loadSource() (*source, error) {
	s := &source{
		packages: map[string]*types.Package{}, inFile: map[*ast.File]*types.Package{}, fset: token.NewFileSet(),
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}},
	}
	out, err := listSource()
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		Module                  *struct{ Main bool }
	}
	var own []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			own = append(own, p)
		}
	}
	compiled := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		checked, err := (&types.Config{Importer: compiled}).Check(p.ImportPath, s.fset, files, s.info)
		if err != nil {
			return nil, err
		}
		s.packages[p.ImportPath] = checked
		for _, file := range files {
			if !ast.IsGenerated(file) {
				s.files = append(s.files, file)
				s.inFile[file] = checked
			}
		}
	}
	return s, nil
}

// each calls do for each node, with the package that it stands in.
func (s *source) each(do func(*types.Package, ast.Node)) {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				do(s.inFile[file], n)
			}
			return true
		})
	}
}

// text is a constant expression's text.
func (s *source) text(e ast.Expr) (string, bool) {
	v := s.info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// textsOf are the texts of all constant expressions of a named type, literals
// among them, in whichever package.
func (s *source) textsOf(path, name string) (texts []string) {
	for e, known := range s.info.Types {
		if isNamed(known.Type, path, name) {
			if text, ok := s.text(e); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

func isNamed(t types.Type, path, name string) bool {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path
}

// mapKeys are the constant keys of maps from texts to elements of this type, in
// literals and by index.
func (s *source) mapKeys(n ast.Node, element string) (keys []string) {
	isOne := func(e ast.Expr) bool {
		t := s.info.Types[e].Type
		if t == nil {
			return false
		}
		m, ok := t.Underlying().(*types.Map)
		return ok && types.Unalias(m.Elem()).String() == element
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		if !isOne(n) {
			return nil
		}
		for _, element := range n.Elts {
			if key, ok := s.text(element.(*ast.KeyValueExpr).Key); ok {
				keys = append(keys, key)
			}
		}
	case *ast.IndexExpr:
		if key, ok := s.text(n.Index); ok && isOne(n.X) {
			keys = append(keys, key)
		}
	}
	return keys
}

// called is the function of another package that a call is of, by its package's
// path, its receiver's type and its name.
func (s *source) called(n ast.Node) (call *ast.CallExpr, path, receiver, name string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, "", "", ""
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, "", "", ""
	}
	f, ok := s.info.Uses[selector.Sel].(*types.Func)
	if !ok || f.Pkg() == nil {
		return nil, "", "", ""
	}
	if r := f.Signature().Recv(); r != nil {
		t := r.Type()
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			receiver = named.Obj().Name()
		}
	}
	return call, f.Pkg().Path(), receiver, f.Name()
}

// jsonNames are the names that a value of a type has as JSON, dotted.
func jsonNames(t types.Type, prefix string, add func(string)) {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	object, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range object.NumFields() {
		field := object.Field(i)
		name, _, _ := strings.Cut(reflect.StructTag(object.Tag(i)).Get("json"), ",")
		if name == "-" || !field.Exported() {
			continue
		}
		if name == "" {
			name = field.Name()
		}
		add(prefix + name)
		jsonNames(field.Type(), prefix+name+".", add)
	}
}

func (s *source) at(n ast.Node) string {
	position := s.fset.Position(n.Pos())
	return filepath.Base(filepath.Dir(position.Filename)) + "/" + filepath.Base(position.Filename)
}

// listSource is what the go command says of the packages that run.
func listSource() ([]byte, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module",
		"./functions/...", "./cmd/...", "./client/...", "./examples/...")
	list.Dir = root
	var said bytes.Buffer
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &said)
	}
	return out, nil
}
