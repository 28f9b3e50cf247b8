package classify

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// TestByReference: a resource is the request's own only if it is the only one and everything that must be equal is.
func TestByReference(t *testing.T) {
	t.Parallel()
	list := &profile.Reference{List: "/data", Same: []profile.Same{{Request: "/ref", Resource: "/meta/ref"}, {Request: "/amount", Resource: "/amount"}}}
	one := &profile.Reference{Same: list.Same}
	const asked = `{"ref":"r7","amount":100}`
	for name, row := range map[string]struct {
		ref    *profile.Reference
		body   string
		status int
		answer string
		want   Finding
	}{
		"the same":                      {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":100}]}`, FindingSame},
		"another spelling of a number":  {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":100.00}]}`, FindingSame},
		"a number as text":              {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":"100.0"}]}`, FindingSame},
		"another number":                {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":100.01}]}`, FindingOther},
		"references are text":           {list, `{"ref":"7","amount":1}`, 200, `{"data":[{"meta":{"ref":"07"},"amount":1}]}`, FindingOther},
		"case counts":                   {list, asked, 200, `{"data":[{"meta":{"ref":"R7"},"amount":100}]}`, FindingOther},
		"two":                           {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":100},{"meta":{"ref":"r7"},"amount":100}]}`, FindingOther},
		"none":                          {list, asked, 200, `{"data":[]}`, FindingNone},
		"no list":                       {list, asked, 200, `{"data":null}`, FindingUnclear},
		"404 of a list":                 {list, asked, 404, `{"data":[]}`, FindingUnclear},
		"a value is missing":            {list, asked, 200, `{"data":[{"meta":{"ref":"r7"}}]}`, FindingUnclear},
		"a value is null":               {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":null}]}`, FindingUnclear},
		"missing, and another is other": {list, asked, 200, `{"data":[{"meta":{"ref":"x"}}]}`, FindingUnclear},
		"the request has none":          {list, `{"ref":"r7"}`, 200, `{"data":[{"meta":{"ref":"r7"},"amount":100}]}`, FindingUnclear},
		"500":                           {list, asked, 500, `{"data":[]}`, FindingUnclear},
		"401":                           {list, asked, 401, `{"data":[]}`, FindingUnclear},
		"no JSON":                       {list, asked, 200, `<html>`, FindingUnclear},
		"the answer is the one":         {one, asked, 200, `{"meta":{"ref":"r7"},"amount":100}`, FindingSame},
		"404 of the one":                {one, asked, 404, `{"error":"not found"}`, FindingNone},
		"404 of nobody knows whom":      {one, asked, 404, ``, FindingUnclear},
		"404 of a proxy":                {one, asked, 404, `<html></html>`, FindingUnclear},
		"a page":                        {one, asked, 200, `<html></html>`, FindingUnclear},
		"204":                           {one, asked, 204, ``, FindingUnclear},
		"a huge exponent":               {list, `{"ref":"r7","amount":1e999999999}`, 200, `{"data":[{"meta":{"ref":"r7"},"amount":1}]}`, FindingUnclear},
		"an exponent":                   {list, `{"ref":"r7","amount":1e2}`, 200, `{"data":[{"meta":{"ref":"r7"},"amount":100}]}`, FindingUnclear},
		"a word for a number":           {list, asked, 200, `{"data":[{"meta":{"ref":"r7"},"amount":"hundred"}]}`, FindingOther},
	} {
		got, why := ByReference(&profile.Profile{Reference: row.ref}, values(row.body), Answer{Status: row.status, Body: []byte(row.answer), Whole: true})
		if got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
		if against := got == FindingUnclear || got == FindingOther; against != (why != "") {
			t.Errorf("%s: %d has the reason %q", name, got, why)
		}
	}
	if got, _ := ByReference(&profile.Profile{Reference: list}, values(asked), Answer{Status: 200, Body: []byte(`{"data":[{"meta":{"ref":"r7"},"amount":100}]}`)}); got != FindingUnclear {
		t.Errorf("an answer that was cut off: %d, want %d", got, FindingUnclear)
	}
}

// values are those of a request's JSON body, by their pointers.
func values(body string) func(pointer string) any {
	document := jsonpointer.Decode([]byte(body))
	return func(pointer string) any { return jsonpointer.Value(document, pointer) }
}

// FuzzByReference: no answer of any kind panics, and only a success proves that the resource is the request's own.
func FuzzByReference(f *testing.F) {
	f.Add(`{"a":1}`, `{"data":[{"a":1.0}]}`, 200)
	f.Add(`{"a":"-"}`, `{"data":[{"a":-}]}`, 404)
	f.Fuzz(func(t *testing.T, body, answer string, status int) {
		for _, list := range []string{"", "/data"} {
			ref := &profile.Reference{List: list, Same: []profile.Same{{Request: "/a", Resource: "/a"}}}
			got, _ := ByReference(&profile.Profile{Reference: ref}, values(body), Answer{Status: status, Body: []byte(answer), Whole: true})
			if got == FindingSame && (status < 200 || status > 299) {
				t.Errorf("%d, %q is the request's own", status, answer)
			}
		}
	})
}
