package results_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// A line is spelled as encoding/json spells it by the tags of its fields.
func TestLineAsJSON(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "plain text", "\"\\</>&", "tab\tline\nfeed\x00\x7f", "é\u2028\u2029\U0001f600", "\xff\xfe", "~ {}"}
	bodies := []string{"", "null", `{"a" : [1.50, "<b>\u00e9"],
		"c":{} }`, `"text"`, "[\r\n]"}
	for range 2000 {
		l := results.Line{}
		for v, i := reflect.ValueOf(&l).Elem(), 0; i < v.NumField(); i++ { // whatever fields there are
			f := v.Field(i)
			switch {
			case !f.CanSet() || rnd.IntN(2) == 0:
			case f.Kind() == reflect.Int:
				f.SetInt(rnd.Int64N(1000) - 5)
			case f.Kind() == reflect.String:
				f.SetString(texts[rnd.IntN(len(texts))])
			case f.Kind() == reflect.Bool:
				f.SetBool(true)
			}
		}
		if rnd.IntN(2) == 0 {
			l.Error = &results.LineError{Code: texts[rnd.IntN(len(texts))], Message: texts[rnd.IntN(len(texts))]}
		}
		l.Body = json.RawMessage(bodies[rnd.IntN(len(bodies))])
		l.BodyBase64 = []byte(texts[rnd.IntN(len(texts))])
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(&l); err != nil {
			t.Fatal(err)
		}
		if got := l.Marshal(); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%s\nwant\n%s", got, want.Bytes())
		}
	}
	l := results.Line{Body: json.RawMessage("{")}
	if got := l.Marshal(); !json.Valid(got) || !bytes.Contains(got, []byte(`"unprintable"`)) {
		t.Errorf("a body that is not JSON: %s", got)
	}
}
