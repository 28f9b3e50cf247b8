package sign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is a piece of a template: a text as it stands, or the name of a placeholder.
type part struct {
	text, name string // one of them is empty
}

// template is a text with placeholders such as {timestamp}.
type template []part

// parse reads a template whose placeholders are among known.
func parse(text string, known []string) (template, error) {
	var t template
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			t = append(t, part{text: before})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !slices.Contains(known, name) {
			return nil, fmt.Errorf("no placeholder begins with {%.20s; there are {%s}", name, strings.Join(known, "}, {"))
		}
		t = append(t, part{name: name})
		text = after
	}
	return t, nil
}

// has reports whether the placeholder is in the template.
func (t template) has(name string) bool {
	return slices.ContainsFunc(t, func(p part) bool { return p.name == name })
}

// fill puts values in the places of their names.
func (t template) fill(values map[string]string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.name != "" {
			b.WriteString(values[p.name])
		}
	}
	return b.String()
}

// readable returns an error if a filled template cannot be taken apart again: two placeholders with nothing between.
func (t template) readable() error {
	for i, p := range t {
		if i > 0 && p.name != "" && t[i-1].name != "" {
			return fmt.Errorf("nothing stands between {%s} and {%s}", t[i-1].name, p.name)
		}
	}
	return nil
}

// read takes a filled template apart into values. One that is in values already has to be the same again.
func (t template) read(text string, values map[string]string) error {
	errOther := errors.New("it has another form")
	for i, p := range t {
		if p.name == "" {
			rest, found := strings.CutPrefix(text, p.text)
			if !found {
				return errOther
			}
			text = rest
			continue
		}
		end := len(text)
		if i+1 < len(t) {
			if end = strings.Index(text, t[i+1].text); end < 0 {
				return errOther
			}
		}
		value := text[:end]
		if before, known := values[p.name]; known && before != value {
			return fmt.Errorf("{%s} is there with two values", p.name)
		}
		values[p.name], text = value, text[end:]
	}
	if text != "" {
		return errOther
	}
	return nil
}
