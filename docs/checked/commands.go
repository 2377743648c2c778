package checked

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Pages are the pages whose commands are checked, relative to the repository's root.
func Pages(root string) ([]string, error) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "localstack/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, page := range found {
			relative, err := filepath.Rel(root, page)
			if err != nil {
				return nil, err
			}
			pages = append(pages, filepath.ToSlash(relative))
		}
	}
	return pages, nil
}

// Command is something on a page that a reader is meant to type.
type Command struct {
	Page string // relative to the repository's root
	Line int    // where it begins, from 1
	Name string // its text, or for a block of shell its page and number, as "README.md, block 1"
	Text string // without comments
}

func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Name) }

var (
	block   = regexp.MustCompile("(?ms)^```(?:sh|bash|console)\n(.*?)^```$")
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	span    = regexp.MustCompile("`([^`]+)`")
	typed   = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:(?:make|colophon|sam|aws|go|git|curl|docker|pip|npm|cargo) \S|(?:docs|localstack|\.ci)/\S*/?(?:check\.sh|stack|install|run|vulncheck)\b)`)
	comment = regexp.MustCompile(`(?m)(^|\s+)# .*$`)
)

// ReadCommands returns a page's blocks of shell, and the commands in its sentences.
// A command is recognized by its program: make, colophon, sam, aws, go and a few
// more, with at least one word behind it.
func ReadCommands(root, page string) ([]Command, error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	text := string(content)
	line := func(offset int) int { return 1 + strings.Count(text[:offset], "\n") }
	var commands []Command
	for i, at := range block.FindAllStringSubmatchIndex(text, -1) {
		commands = append(commands, Command{
			Page: page, Line: line(at[0]), Name: fmt.Sprintf("%s, block %d", page, i+1), Text: shell(text[at[2]:at[3]]),
		})
	}
	// Blocks are blanked, so that lines keep their numbers.
	prose := fenced.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	text = prose
	for _, at := range span.FindAllStringSubmatchIndex(prose, -1) {
		words := strings.Join(strings.Fields(prose[at[2]:at[3]]), " ")
		if typed.MatchString(words) {
			commands = append(commands, Command{Page: page, Line: line(at[0]), Name: words, Text: words})
		}
	}
	return commands, nil
}

// shell is a block without comments, blank lines and trailing white space.
func shell(text string) string {
	var kept []string
	for _, line := range strings.Split(comment.ReplaceAllString(text, ""), "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
