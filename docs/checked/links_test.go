package checked_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"colophon/docs/checked"
)

const designPage = "../design.md"

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\[[^\]\[]*\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
)

// TestEachLinkOfAPageLeadsSomewhere follows each relative link: to a file or a
// folder, in a page to one of its headings, in Go to a declaration.
func TestEachLinkOfAPageLeadsSomewhere(t *testing.T) {
	t.Parallel()
	pages, err := checked.Pages(root)
	must(t, err)
	if !slices.Contains(pages, "docs/design.md") || !slices.ContainsFunc(pages, func(p string) bool { return strings.HasPrefix(p, "docs/adr/") }) {
		t.Fatalf("the design is not among the pages: %v", pages)
	}
	followed := 0
	for _, page := range pages {
		for _, target := range links(read(t, page)) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			if fault := follow(page, target); fault != "" {
				t.Errorf("%s: (%s): %s", page, target, fault)
			}
		}
	}
	if followed < 150 {
		t.Errorf("%d links were found", followed)
	}
}

func TestALinkThatLeadsNowhereIsFound(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"testing.md":                                       "",
		"testing.md#clocks":                                "",
		"#what-must-hold":                                  "",
		"../internal/delivery":                             "",
		"../internal/delivery/decide.go#Decide":            "",
		"../internal/store/deliveries.go#Deliveries.Claim": "",
		"../internal/delivery/limits.go#LeaseTime":         "",
		"../template.yaml":                                 "",
		"nowhere.md":                                       "no such file",
		"testing.md#clock":                                 "no such heading",
		"#what-must":                                       "no such heading",
		"../internal/delivery/decide.go#Decided":           "no such declaration",
		"../internal/store/deliveries.go#Claim":            "no such declaration",
		"../template.yaml#Queue":                           "only pages and Go files have parts to link to",
		"../../../etc/passwd":                              "outside of the repository",
	} {
		if got := follow("docs/design.md", target); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	text := "A [b `c`](d.md) and `[no](link)`, ![e](f.svg).\n\n```\n[no](link)\n```\n[g](h.md#i) [j](k_(l).md)\n"
	if got, want := links(text), []string{"d.md", "f.svg", "h.md#i", "k_(l).md"}; !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}

// links are the targets of a page's links, in their order; code has none.
func links(text string) (targets []string) {
	text = fence.ReplaceAllString(text, "")
	text = code.ReplaceAllString(text, "code")
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// follow says what is wrong with a relative link of a page; nothing where it leads somewhere.
func follow(page, target string) (fault string) {
	to, part, _ := strings.Cut(target, "#")
	name := page
	if to != "" {
		name = path.Join(path.Dir(page), to)
	}
	if strings.HasPrefix(name, "../") {
		return "outside of the repository"
	}
	file := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(file); err != nil {
		return "no such file"
	}
	switch {
	case part == "":
		return ""
	case strings.HasSuffix(name, ".md"):
		text, err := os.ReadFile(file)
		if err != nil || !slices.Contains(anchors(string(text)), part) {
			return "no such heading"
		}
	case strings.HasSuffix(name, ".go"):
		if !slices.Contains(declarations(file), part) {
			return "no such declaration"
		}
	default:
		return "only pages and Go files have parts to link to"
	}
	return ""
}

// anchors are a page's headings as GitHub makes links of them.
func anchors(text string) (anchors []string) {
	seen := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(found[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			}
		}
		anchor := b.String()
		if n := seen[anchor]; n > 0 {
			anchors = append(anchors, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	}
	return anchors
}

// declarations are a file's, under whichever build tags; a method has its
// receiver's type before it.
func declarations(path string) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if of, ok := of.(*ast.Ident); ok {
					name = of.Name + "." + name
				}
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// rows are the cells of a page's table whose heading begins with this line.
func rows(t testing.TB, page, head string) (rows [][]string) {
	t.Helper()
	_, table, found := strings.Cut(readPage(t, page), "\n"+head)
	if !found {
		t.Fatalf("%s has no table %q", page, head)
	}
	for i, line := range strings.Split(table, "\n") {
		if i < 2 {
			continue // the heading's rest, and the line below it
		}
		if !strings.HasPrefix(line, "|") {
			return rows
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for c := range cells {
			cells[c] = strings.TrimSpace(cells[c])
		}
		rows = append(rows, cells)
	}
	return rows
}

// The model's page is held to Decide itself (internal/delivery).
func TestTheDesignHasTheRowsOfDecideInTheirOrder(t *testing.T) {
	t.Parallel()
	decisions := func(page, head string, column int) (names []string) {
		for _, row := range rows(t, page, head) {
			names = append(names, row[0]+" "+row[column])
		}
		return names
	}
	design := decisions(designPage, "| # | snapshot |", 3)
	model := decisions("../model/README.md", "| # | read |", 2)
	if len(design) < 15 || !slices.Equal(design, model) {
		t.Errorf("the design has the rows\n%q\nthe model\n%q", design, model)
	}
}

func TestTheDesignsLimitsAreTheCodes(t *testing.T) {
	t.Parallel()
	limits := readSource(t).packages["colophon/internal/delivery"].Scope()
	limitRows := rows(t, designPage, "| constant | value |")
	for _, row := range limitRows {
		name := strings.Trim(row[0], "`")
		c, ok := limits.Lookup(name).(*types.Const)
		if !ok {
			t.Errorf("there is no constant %s", name)
			continue
		}
		value, _ := constant.Int64Val(constant.ToInt(c.Val()))
		want := strconv.FormatInt(value, 10)
		if number, unit, ok := strings.Cut(row[1], " "); ok {
			of := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "days": 24 * time.Hour}[unit]
			if of == 0 {
				t.Errorf("%s: there is no unit %s", name, unit)
				continue
			}
			want = strconv.FormatInt(value/int64(of), 10)
			if value%int64(of) != 0 || number != want {
				t.Errorf("%s is %v, the design says %s", name, time.Duration(value), row[1])
			}
		} else if row[1] != want {
			t.Errorf("%s is %s, the design says %s", name, want, row[1])
		}
	}
	if len(limitRows) < 15 {
		t.Errorf("%d limits were found", len(limitRows))
	}
}

// Each item of the design's tables is a key that is stored, and has the attributes
// that it says.
func TestTheDesignsItemsAreTheStoredOnes(t *testing.T) {
	t.Parallel()
	text := readPage(t, designPage)
	names := readPage(t, namesPage)
	_, text, _ = strings.Cut(text, "\n## Tables and keys\n")
	text, _, found := strings.Cut(text, "\n## ")
	if !found {
		t.Fatal("the section was not found")
	}
	table, keys := "content", 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "**The delivery table**") {
			table = "delivery"
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		keys++
		key := strings.ReplaceAll(table+" "+strings.TrimSpace(cells[1])+" "+strings.TrimSpace(cells[2]), "`", "")
		if !strings.Contains(names, "\nkey "+key+"\n") {
			t.Errorf("no key %s is stored", key)
		}
		for _, found := range regexp.MustCompile("`([a-zA-Z]+)`").FindAllStringSubmatch(cells[3], -1) {
			if !regexp.MustCompile(`(?m)^attribute ` + regexp.QuoteMeta(key) + ` (\w+\.)*` + found[1] + ` [A-Z]+$`).MatchString(names) {
				t.Errorf("%s has no attribute %s", key, found[1])
			}
		}
	}
	if keys != strings.Count(names, "\nkey content ")+strings.Count(names, "\nkey delivery ")-1 { // the list of tokens of all projects
		t.Errorf("the design has %d of the keys", keys)
	}
}
