package batch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/session"
)

// urlTemplate is the target of rows: a URL with {field} in its path and query in place of a row's value,
// percent-encoded. Scheme and host are the same for all rows.
type urlTemplate struct {
	fixed *url.URL // if no field is named
	parts []urlPart
}

// urlPart is a literal or, if field is not negative, an index into the fields needed by the plan from each row.
type urlPart struct {
	literal string
	field   int
	query   bool
}

// parseURLTemplate reads --url, a URL with {field} in its path or query, and adds these fields to needs, the fields read from each row. Errors repeat nothing of the
// URL but its faults, since it may hold a secret.
func parseURLTemplate(text string, needs *input.RowNeeds) (urlTemplate, error) {
	var t urlTemplate
	if !strings.ContainsAny(text, "{}") {
		u, err := session.ParseTarget(text)
		return urlTemplate{fixed: u}, err
	}
	query := false
	for rest := text; rest != ""; {
		literal, after, opened := strings.Cut(rest, "{")
		if strings.Contains(literal, "}") {
			return t, errors.New(`a "}" without a "{" before it`)
		}
		query = query || strings.Contains(literal, "?")
		t.parts = append(t.parts, urlPart{literal: literal, field: -1})
		if !opened {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.Contains(name, "{") {
			return t, errors.New(`want {field}, the name of a column or member, in braces`)
		}
		t.parts = append(t.parts, urlPart{field: needs.Index(name, "--url"), query: query})
		rest = next
	}
	if head := t.parts[0].literal; strings.Count(head, "/") < 3 { // before the first field: scheme://host/
		return t, errors.New("{field} may stand in the path and in the query only")
	}
	_, err := t.fill(make([]string, len(needs.Fields))) // with empty values, as a check of the rest
	return t, err
}

// origin returns the scheme, host and port that all rows share; no {field} may stand in them. fields is the number of fields of a row.
func (t *urlTemplate) origin(fields int) string {
	u, err := t.fill(make([]string, fields))
	if err != nil { // cannot be: parseURLTemplate has filled it
		return ""
	}
	return session.OriginOf(u)
}

// fill returns the URL of the row with these field values. It is an error if a value cannot stand in a path, or makes no URL.
func (t *urlTemplate) fill(values []string) (*url.URL, error) {
	if t.fixed != nil {
		return t.fixed, nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.field < 0:
			b.WriteString(p.literal)
		case p.query:
			b.WriteString(url.QueryEscape(values[p.field]))
		case values[p.field] == "." || values[p.field] == "..": // these are steps in a path
			return nil, fmt.Errorf("the value %q cannot stand in the path of --url", values[p.field])
		default:
			b.WriteString(url.PathEscape(values[p.field]))
		}
	}
	return session.ParseTarget(b.String())
}
