package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
)

// fileOf returns p as the text of a profile file: see Profile.File. A fact of a weak source (doubted) has its source in its own Statement.
func fileOf(p *Profile) ([]byte, error) {
	for _, f := range facts() {
		_, known := p.Sources[f.field]
		if value := reflect.ValueOf(f.part(stated(p, f.field))).Elem(); !known && !value.IsZero() && !doubted(p.Doubted).has(f.name) {
			return nil, fmt.Errorf("profile: %s: it has no source", f.name)
		}
	}
	w := &fileWriter{names: map[Source]string{}}
	for _, s := range p.Statements() {
		if s.Value != "" {
			w.fact(s)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"name\": %s,\n  \"version\": %s,\n", quoted(p.Name), quoted(p.Version))
	if p.Title != "" {
		fmt.Fprintf(&b, "  \"title\": %s,\n", quoted(p.Title))
	}
	fmt.Fprintf(&b, "  \"sources\": {%s\n  }%s\n}\n", w.sources.String(), w.facts.String())
	return b.Bytes(), nil
}

// fileWriter collects the parts of a profile file.
type fileWriter struct {
	names   map[Source]string // the names of sources, by the source without its Said
	sources bytes.Buffer      // members of the object "sources"
	facts   bytes.Buffer      // members of the file, each after a comma
}

// fact appends a fact to the file. A source that several facts share is written once.
func (w *fileWriter) fact(s Statement) {
	source := s.Source
	source.Said = "" // the quotation belongs to the fact, not to the shared source
	name, known := w.names[source]
	if !known {
		name = "s" + strconv.Itoa(len(w.names)+1)
		w.names[source] = name
		if len(w.names) > 1 {
			w.sources.WriteByte(',')
		}
		fmt.Fprintf(&w.sources, "\n    %s: {\"ref\": %s, \"date\": %s, \"confidence\": %s}", quoted(name), quoted(source.Ref), quoted(source.Date), quoted(string(source.Confidence)))
	}
	said := ""
	if s.Source.Said != "" {
		said = ", \"said\": " + quoted(s.Source.Said)
	}
	fmt.Fprintf(&w.facts, ",\n  %s: {\"value\": %s, \"source\": %s%s}", quoted(s.Name), s.Value, quoted(name), said)
}

// quoted returns a text as JSON.
func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text is always encoded
	return string(bytes.TrimSpace(b.Bytes()))
}
