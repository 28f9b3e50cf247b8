package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
)

// FileBytesMax is the size of a profile file that Load reads, in bytes.
const FileBytesMax = 1 << 20

// Load reads a profile file: one JSON object of facts, each {"value": …, "source": …} with a source from the object
// "sources". data/draft-07.json is an example, and `oncehttp profile new` prints a skeleton. Unknown members, and members
// that occur twice, are errors; "$comment" and "_comment" are ignored everywhere, and a fact that is null is unknown. The
// package comment tells the use of a fact by the confidence of its source. An error is one line that names the member
// and the wanted value. Load reads r to its end, or to FileBytesMax.
func Load(r io.Reader) (*Profile, error) {
	if v := reflect.ValueOf(r); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("profile: no reader")
	}
	text, err := io.ReadAll(io.LimitReader(r, FileBytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("profile: %w", err)
	case len(text) > FileBytesMax:
		return nil, fmt.Errorf("profile: a file of more than %d bytes", FileBytesMax)
	}
	p, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return p, nil
}

// LoadFile reads the profile file at path, as Load reads one. Its errors name the path.
func LoadFile(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err // without the path, which is added below
		}
		return nil, fmt.Errorf("profile: %s: %w", path, err)
	}
	defer f.Close() // it was only read
	p, err := Load(f)
	if err != nil {
		return nil, fmt.Errorf("profile: %s: %s", path, strings.TrimPrefix(err.Error(), "profile: "))
	}
	return p, nil
}

// file is the state of reading a profile file.
type file struct {
	members map[string]any    // those not read yet
	sources map[string]Source // by name in the file
	cited   map[string]bool   // the sources of facts so far
	p       *Profile          // the result
}

// parse reads a profile from the text of a file, and checks each fact and all of them together. Unknown members and unused sources are errors. The
// errors do not begin with "profile:".
func parse(text []byte) (*Profile, error) {
	members, err := members(text)
	if err != nil {
		return nil, err
	}
	f := &file{members: members, cited: map[string]bool{}, p: &Profile{Sources: map[string]Source{}}}
	if err := f.head(); err != nil {
		return nil, err
	}
	for _, fact := range facts() {
		if err := f.fact(&fact); err != nil {
			return nil, err
		}
	}
	// head and fact remove the members that they read, so any left is unknown. The first in order is named.
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		return nil, fmt.Errorf("%s: no such member; want name, version, title, sources, or one of %s", name, strings.Join(factNames(), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(f.sources)) {
		if !f.cited[name] {
			return nil, fmt.Errorf("sources: no fact names %q", name)
		}
	}
	if err := checkTogether(f.p); err != nil {
		return nil, err
	}
	fillBlanks(f.p)
	return f.p, nil
}

// head reads and checks the members that are no facts: name, version, title and sources. The first two must be there. Members that were read are removed: any
// left in the end is unknown.
func (f *file) head() error {
	for _, m := range []struct {
		name string
		to   any
		must bool
	}{{"name", &f.p.Name, true}, {"version", &f.p.Version, true}, {"title", &f.p.Title, false}, {"sources", &f.sources, false}} {
		value, found := f.members[m.name]
		delete(f.members, m.name)
		if !found || value == nil {
			if m.must {
				return fmt.Errorf("%s: it is missing", m.name)
			}
			continue
		}
		if err := into(value, m.to); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return checkHead(f.p, f.sources)
}

// fact reads one fact into the profile, as far as its source allows. A fact that the file does not have, or that is null, is skipped. A source that was cited
// is noted: one that no fact names is an error later.
func (f *file) fact(fact *fact) error {
	stated, found := f.members[fact.name]
	delete(f.members, fact.name)
	if !found || stated == nil {
		return nil
	}
	var parts struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
		Said   string `json:"said"`
	}
	if err := into(stated, &parts); err != nil {
		return fmt.Errorf("%s: want {\"value\": …, \"source\": NAME}: %w", fact.name, err)
	}
	if parts.Value == nil {
		return fmt.Errorf("%s: no value; a fact that is unknown is left out, or null", fact.name)
	}
	source, known := f.sources[parts.Source]
	if !known {
		return fmt.Errorf("%s: source %q is not in sources", fact.name, parts.Source)
	}
	f.cited[parts.Source] = true // a source that no fact names is an error
	if err := checkSaid(parts.Said); err != nil {
		return fmt.Errorf("%s: said: %w", fact.name, err)
	}
	source.Said = parts.Said
	to := fact.part(f.p)
	if err := into(parts.Value, to); err != nil {
		return fmt.Errorf("%s: %w", fact.name, err)
	}
	if v := reflect.ValueOf(to).Elem(); v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return fmt.Errorf("%s: an empty value says nothing; a fact that is unknown is left out, or null", fact.name)
	}
	if err := fact.check(f.p); err != nil {
		return fmt.Errorf("%s: %w", fact.name, err)
	}
	return f.weigh(fact, source, to)
}

// weigh reduces a fact, just read into the profile, to the part that its source allows, and notes the source. An assumption for a fact that needs a source is an
// error. A fact of a secondary source is kept in Doubted as it was stated, and fact.doubted makes its field more cautious; held counts the matchers that this adds
// to Unclear. to is the pointer of fact.part.
func (f *file) weigh(fact *fact, source Source, to any) error {
	switch {
	// That no key is sent may be an assumption, too: nothing is more cautious.
	case source.Confidence == Assumed && !fact.assumed && !(fact.name == "carrier" && f.p.Carrier.Place == Nowhere):
		return fmt.Errorf("%s: an assumption must not decide what an answer means or where a key travels; name a source, or leave it out", fact.name)
	case source.Confidence == Secondary && fact.doubted != nil:
		s := Statement{Name: fact.name, Value: fact.text(f.p), Text: words(to), Source: source, Use: fact.use, held: -len(f.p.Unclear)}
		fact.doubted(f.p)
		s.held += len(f.p.Unclear)
		f.p.Doubted = append(f.p.Doubted, s)
		if reflect.ValueOf(fact.part(f.p)).Elem().IsZero() { // nothing is left that the source states
			return nil
		}
	}
	f.p.Sources[fact.field] = source
	return nil
}

// into decodes a value of members into to, a pointer. Unknown members of objects are errors. After an error to may be changed.
func into(value, to any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(to)
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		where := ""
		if te.Field != "" {
			where = te.Field + ": "
		}
		return fmt.Errorf("%sa JSON %s, want %s", where, te.Value, wanted(te.Type))
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// wanted returns what a value of a Go type is called in JSON, for errors: "a string", "a list".
func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int64, reflect.Uint8: // spanText, and Fact
		return "a string"
	case reflect.Struct:
		if t == reflect.TypeFor[Endpoint]() {
			return "a string, such as \"POST /payments/{id}\""
		}
	case reflect.String:
		return "a string"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// depthMax bounds the nesting of values in a file; the format needs five levels.
const depthMax = 10

// members returns the file's object, without comments. Unlike encoding/json it refuses a member that occurs twice, and one in
// other letters than lower case. Numbers are json.Number.
func members(text []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	value, err := readValue(dec, "", 0)
	if err != nil {
		var se *json.SyntaxError
		if errors.As(err, &se) {
			at := min(int(se.Offset), len(text))
			return nil, fmt.Errorf("line %d: %s", 1+bytes.Count(text[:at], []byte("\n")), strings.TrimPrefix(err.Error(), "json: "))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("it ends early; want one JSON object")
		}
		return nil, err
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, errors.New("want one JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the JSON object")
	}
	return object, nil
}

// readValue reads the next JSON value. at is its path in names with dots, for errors. depth is the number of values around it; more than depthMax are
// an error.
func readValue(dec *json.Decoder, at string, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > depthMax {
		return nil, fmt.Errorf("%s: nested too deep", at)
	}
	switch token {
	case json.Delim('{'):
		return readObject(dec, at, depth)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			value, err := readValue(dec, at, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = dec.Token() // the closing bracket
		return list, err
	}
	return token, nil
}

// readObject reads the rest of a JSON object whose opening brace was read. at is its path in names with dots, for errors; depth is the number of
// values around it. A member that occurs twice is an error.
func readObject(dec *json.Decoder, at string, depth int) (any, error) {
	object, seen := map[string]any{}, []string{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		path := strings.TrimPrefix(at+"."+name, ".")
		switch isComment := name == "$comment" || name == "_comment"; {
		case !isComment && slices.Contains(seen, name):
			return nil, fmt.Errorf("%s: it is there twice", path)
		case name != strings.ToLower(name):
			return nil, fmt.Errorf("%s: no such member; members are in lower case", path)
		}
		value, err := readValue(dec, path, depth+1)
		if err != nil {
			return nil, err
		}
		if seen = append(seen, name); name != "$comment" && name != "_comment" {
			object[name] = value
		}
	}
	_, err := dec.Token() // the closing brace
	return object, err
}
