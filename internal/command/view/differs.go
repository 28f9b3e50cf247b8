package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// namesMost is the limit of differing fields in the text.
const namesMost = 5

// The parts of a request outside its body, as Differences names them.
const (
	DifferentMethod = "the method"
	DifferentServer = "the server"
	DifferentTarget = "the path or query"
	DifferentHeader = "a header"
)

// Differences names the parts in which a request differs from the recorded one under its key, such as "amount": never the values. standing is the record. If
// its request is gone, only the values that the journal kept of it can be compared. An empty body beside one with content counts as gone. If nothing else
// differs, a header does.
func Differences(req, standing *persist.Record) string {
	var names []string
	add := func(differs bool, name string) {
		if differs {
			names = append(names, name)
		}
	}
	add(req.Method != standing.Method, DifferentMethod)
	add(req.Origin != standing.Origin, DifferentServer)
	add(req.Target != standing.Target, DifferentTarget)
	if gone := len(standing.Body) == 0 && (len(req.Body) > 0 || standing.RequestGone()); gone {
		names = append(names, keptDifferences(req, standing)...)
		if len(names) == 0 {
			return "what is no longer kept of its request"
		}
	} else {
		names = append(names, bodyDifferences(req, standing)...)
	}
	if len(names) == 0 {
		return DifferentHeader
	}
	more := ""
	if n := len(names) - namesMost; n > 0 {
		names, more = names[:namesMost], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// keptDifferences returns the names of the fields of a request that differ from the values that the journal has kept of the recorded one, or are not in the
// request. A value that could not be kept (Omitted) is not compared.
func keptDifferences(req, standing *persist.Record) []string {
	fields := request.FieldsOf(req.Header, req.Body)
	var names []string
	for _, kept := range standing.KeptFields {
		if text, err := fields.Text(kept.Pointer); !kept.Omitted && (err != nil || text != kept.Value) {
			names = append(names, fieldName(kept.Pointer))
		}
	}
	return names
}

// bodyDifferences returns the names of the members in which the bodies of a request and of the record under its key differ, sorted; "the body" if one
// of them has no members, and nil for equal bodies.
func bodyDifferences(req, standing *persist.Record) []string {
	if string(req.Body) == string(standing.Body) {
		return nil
	}
	a, b := memberTexts(req), memberTexts(standing)
	if a == nil || b == nil {
		return []string{"the body"}
	}
	names := map[string]bool{}
	for pointer, text := range a {
		if other, has := b[pointer]; !has || other != text {
			names[fieldName(pointer)] = true
		}
	}
	for pointer := range b {
		if _, has := a[pointer]; !has {
			names[fieldName(pointer)] = true
		}
	}
	if len(names) == 0 {
		return []string{"the spelling of the body"}
	}
	return slices.Sorted(maps.Keys(names))
}

// memberTexts returns the values in a request's body by their JSON pointers; nil if the body is neither JSON nor a form.
func memberTexts(rec *persist.Record) map[string]string {
	texts := map[string]string{}
	if form := request.FieldsOf(rec.Header, rec.Body).Form(); form != nil {
		for name, values := range form {
			texts["/"+name] = strings.Join(values, "\x00")
		}
		return texts
	}
	document := jsonpointer.Decode(rec.Body)
	if document == nil {
		return nil
	}
	flatten(texts, "", document)
	return texts
}

// flatten adds each scalar inside a JSON value to texts, by its JSON pointer. pointer is that of value. An empty object or list counts as a scalar, but for
// an empty object at the top: a body without members lacks all those of the other one, and nothing more.
func flatten(texts map[string]string, pointer string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 && pointer != "" {
			texts[pointer] = "{}"
		}
		for name, member := range value {
			flatten(texts, pointer+words.PointerTo(name), member)
		}
	case []any:
		if len(value) == 0 {
			texts[pointer] = "[]"
		}
		for i, element := range value {
			flatten(texts, pointer+"/"+strconv.Itoa(i), element)
		}
	default:
		texts[pointer] = fmt.Sprintf("%T %v", value, value) // with the type: 1 is not "1"
	}
}

// fieldName returns the name of a field for people: the member's name for a pointer to a top member, else the pointer.
func fieldName(pointer string) string {
	name := strings.TrimPrefix(pointer, "/")
	if name == "" || strings.Contains(name, "/") {
		return words.Clip(pointer)
	}
	return words.Clip(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
}
