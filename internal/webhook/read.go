package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	depthMax  = 64   // of a body
	eventsMax = 1000 // in a body
)

// decode returns the JSON value of a body. Numbers keep their spelling. Two members of one name in an object, text after the value, and
// text that is no UTF-8 are errors: two readers could read them in two ways.
func decode(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the body is no UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	document, err := value(d, 0)
	if err != nil {
		return nil, fmt.Errorf("the body is no plain JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON of the body")
	}
	return document, nil
}

// value reads one JSON value. Unlike encoding/json it refuses objects with two members of one name: the API may have signed one, and mean the other.
// depth is the number of values around it.
func value(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth == depthMax {
		return nil, errors.New("it is too deep")
	}
	switch token {
	case json.Delim('{'):
		return object(d, depth)
	case json.Delim('['):
		return list(d, depth)
	}
	return token, nil
}

// object reads the rest of an object after its brace.
func object(d *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := members[name]; twice {
			return nil, errors.New("an object has two members of one name")
		}
		if members[name], err = value(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return members, err
}

// list reads the rest of an array after its bracket.
func list(d *json.Decoder, depth int) (any, error) {
	values := []any{}
	for d.More() {
		v, err := value(d, depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := d.Token()
	return values, err
}

// event is one event of a body.
type event struct {
	body, own any
	signed    []string // the pointers to its signed values; nil: all are signed
}

// events returns the events in a decoded body: the body itself, or the entries of the list at w.Events. own is what pointers lead from: the entry, or its
// value at w.Event.
func events(w *profile.Webhook, body any) ([]event, error) {
	if w.Events == "" {
		return []event{{body: body, own: body}}, nil
	}
	entries, ok := jsonpointer.Value(body, w.Events).([]any)
	if !ok || len(entries) > eventsMax {
		return nil, fmt.Errorf("at %s is no list of at most %d events", w.Events, eventsMax)
	}
	all := make([]event, len(entries))
	for i, entry := range entries {
		all[i] = event{body: body, own: entry}
		if w.Event != "" {
			all[i].own = jsonpointer.Value(entry, w.Event)
		}
	}
	return all, nil
}

// raw returns the text of the event at a pointer, signed or not. ok is false for a value that is no text, number or boolean; of an absent
// value, and of null, the text is empty.
func (e *event) raw(pointer string) (text string, ok bool) {
	text, found := jsonpointer.Text(e.own, pointer)
	return text, !found || text != "" || jsonpointer.Value(e.own, pointer) == nil || jsonpointer.Value(e.own, pointer) == any("")
}

// text returns the text of the event at a pointer; empty if there is none, or if the signature does not cover it. e.signed has the pointers to the signed
// values; nil: all are signed.
func (e *event) text(pointer string) string {
	if pointer == "" || e.signed != nil && !contains(e.signed, pointer) {
		return ""
	}
	text, _ := jsonpointer.Text(e.own, pointer)
	return text
}

// kind returns the type of the event, in several parts joined by dots if the profile says so; empty if a part is missing.
func (e *event) kind(w *profile.Webhook) string {
	var parts []string
	for _, pointer := range strings.Fields(w.Type) {
		text := e.text(pointer)
		if text == "" {
			return ""
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ".")
}

// created returns the time of the event; zero if events of this API have none. ok is false if it cannot be read. Where only fields are signed, it may
// be unsigned: it can only let an event prove nothing.
func (e *event) created(w *profile.Webhook) (at time.Time, ok bool) {
	if w.Created == "" {
		return time.Time{}, true
	}
	text, _ := jsonpointer.Text(e.own, w.Created)
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), true
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil && !at.IsZero()
}

// contains reports whether the list has the text.
func contains(list []string, text string) bool {
	for _, s := range list {
		if s == text {
			return true
		}
	}
	return false
}
