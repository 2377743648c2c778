package content

import (
	"path"
	"strings"
)

// types are the content types of paths' endings. The system's table, which the
// mime package reads, differs from machine to machine.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".csv": "text/csv; charset=utf-8", ".htm": "text/html; charset=utf-8",
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".json": "application/json",
	".markdown": "text/markdown; charset=utf-8", ".md": "text/markdown; charset=utf-8", ".svg": "image/svg+xml",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
}

// TypeOfPath is the content type that a document's path stands for where nobody
// names another: that of its ending, or plain text.
func TypeOfPath(documentPath string) string {
	if known, ok := types[strings.ToLower(path.Ext(documentPath))]; ok {
		return known
	}
	return "text/plain; charset=utf-8"
}
