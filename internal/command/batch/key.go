package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/profile"
)

// keyTemplate spells the key of a row: "order:{user}:{order_id}". The text before the first "{" is the scope.
// After it, every part between two colons is either one field or plain text. A part with both is refused, because
// "{a}-{b}" would give two different rows one key.
type keyTemplate struct {
	scope  oncehttp.Scope
	parts  []keyPart
	fields []string // the fields named, in order, each once
	// whole: the one field is the key as it stands, without a scope.
	whole bool
	// shape is applied to a key before its use.
	shape session.KeyShape
}

// keyPart is a literal or, if field is not negative, an index into fields.
type keyPart struct {
	literal string
	field   int
}

// keyTemplateFor reads the value of --key, a template such as "order:{id}", for an API. If the API wants UUIDs, or reads keys in the body or the query, --key may also
// be one field alone: then the rows hold the whole keys.
func keyTemplateFor(text string, shape session.KeyShape, p *profile.Profile) (keyTemplate, error) {
	name, opened := strings.CutPrefix(text, "{")
	name, closed := strings.CutSuffix(name, "}")
	inRow := p.Carrier.Place == profile.Body || p.Carrier.Place == profile.Form || p.Carrier.Place == profile.Query
	if opened && closed && name != "" && !strings.ContainsAny(name, "{}") && (inRow || p.Key.Format != profile.AnyFormat) {
		return keyTemplate{whole: true, shape: shape, fields: []string{name}}, nil
	}
	t, err := parseKeyTemplate(text)
	if err == nil && p.Key.Format == profile.UUIDv4 && !shape.UUID4 {
		return t, fmt.Errorf("%q: the API of --profile %s takes UUIDs of version 4, which are random; keep one beside each row, and say --key '{column}', or --key-uuid4 for one in their shape that is made of the key", text, p.Name)
	}
	t.shape = shape
	// Without a flag for the shape, a UUID is made of the key if the API wants one, or takes no ":", which stands in every key of a template.
	t.shape.UUID = shape.UUID || !shape.Set() && (p.Key.Format == profile.UUID || p.Key.Alphabet != "" && !strings.Contains(p.Key.Alphabet, ":"))
	return t, err
}

// parseKeyTemplate reads a template such as "order:{user}:{order_id}": a scope, then fields or plain text, parted by
// colons. The caller puts the name of the flag before the error.
func parseKeyTemplate(s string) (keyTemplate, error) {
	var t keyTemplate
	first := strings.IndexByte(s, '{')
	switch {
	case s == "":
		return t, errors.New(`is empty; want a scope and fields, such as "order:{user}:{order_id}"`)
	case first < 0:
		return t, fmt.Errorf(`%q names no {field}, so that all rows would share one key`, s)
	case first == 0:
		return t, fmt.Errorf(`%q has no scope before the first field; want one such as "order:%s"`, s, s)
	}
	head, found := strings.CutSuffix(s[:first], ":")
	if !found {
		return t, fmt.Errorf(`%q: want a ":" before %q`, s, s[first:])
	}
	scope := strings.Split(head, ":")
	if slices.Contains(scope, "") {
		return t, fmt.Errorf("%q: the scope %q has an empty part", s, head)
	}
	t.scope = oncehttp.NewScope(scope...)
	for _, text := range strings.Split(s[first:], ":") {
		part, err := t.parsePart(text)
		if err != nil {
			return t, fmt.Errorf("%q: %w", s, err)
		}
		t.parts = append(t.parts, part)
	}
	return t, nil
}

// parsePart parses one part of a key template, between two colons: plain text (field is -1), or {FIELD}, by its index in t.fields. It adds a new field there.
func (t *keyTemplate) parsePart(text string) (keyPart, error) {
	if text == "" {
		return keyPart{}, errors.New("a part is empty")
	}
	if !strings.ContainsAny(text, "{}") {
		return keyPart{literal: text, field: -1}, nil
	}
	name, opened := strings.CutPrefix(text, "{")
	name, closed := strings.CutSuffix(name, "}")
	switch {
	case !opened || !closed || strings.ContainsAny(name, "{}"):
		return keyPart{}, fmt.Errorf("%q: want one {field}, or plain text, between two colons", text)
	case name == "":
		return keyPart{}, errors.New("{} names no field")
	}
	i := slices.Index(t.fields, name)
	if i < 0 {
		i = len(t.fields)
		t.fields = append(t.fields, name)
	}
	return keyPart{field: i}, nil
}

// key returns the key of a row's first try; later tries (generations) get others made of it. values are the row's fields in the order of t.fields. If one is empty,
// the key is "", which no operation may have. The readers of rows refuse empty fields before.
func (t *keyTemplate) key(values []string) oncehttp.Key {
	if t.whole {
		return oncehttp.Key(values[0])
	}
	parts := make([]string, len(t.parts))
	for i, p := range t.parts {
		parts[i] = p.literal
		if p.field >= 0 {
			parts[i] = values[p.field]
		}
	}
	return t.scope.Key(parts...)
}
