package request

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/persist"
)

// TestCheckPointers: bad pointers, too many, and those of credentials are refused.
func TestCheckPointers(t *testing.T) {
	t.Parallel()
	s := &Secrets{Headers: []string{"X-Badge"}, Parameters: []string{"iban"}, KeepHeader: func(string) bool { return true }}
	for pointer, want := range map[string]string{
		"/amount": "", "/data/0/order_id": "", "/a~1b": "", "/": "", "/signed": "", "/idempotency_key": "", "/pinned": "",
		"amount": "not a JSON pointer", "": "not a JSON pointer", "/\xff": "not a JSON pointer",
		"/token": "credential", "/card/cardToken": "credential", "/api_key": "credential", "/apiKey": "credential", "/privateKey": "credential",
		"/client_secret": "credential", "/clientSecret": "credential", "/tokens/0": "credential", "/password/hint": "credential",
		"/auth~1token": "credential", "/user[password]": "credential", "/X-Badge": "credential", "/IBAN": "credential", "/sig": "credential",
	} {
		err := s.CheckPointers([]string{"/first", pointer})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pointer, err, want)
		}
	}
	list := strings.Split("/1 /2 /3 /4 /5 /6 /7 /8", " ")
	long := "/" + strings.Repeat("x", keepPointersBytesMax-1)
	for name, c := range map[string]struct {
		pointers []string
		ok       bool
	}{
		"as many as may be": {list, true}, "one more": {append(list, "/9"), false}, "twice": {[]string{"/a", "/b", "/a"}, false},
		"as long as may be": {[]string{long}, true}, "a byte more": {[]string{long + "x"}, false},
	} {
		if err := s.CheckPointers(c.pointers); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeptFields: what is kept of JSON and of forms, in the order of KeepFields, and
// what is only marked.
func TestKeptFields(t *testing.T) {
	t.Parallel()
	pointers := []string{"/amount", "/meta/order", "/lines/1/sku", "/gone"}
	left := persist.KeptFieldsBytesMax
	for _, p := range pointers {
		left -= len(p)
	}
	kept := func(pairs ...string) (fields []persist.KeptField) {
		for i := 0; i < len(pairs); i += 2 {
			fields = append(fields, persist.KeptField{Pointer: pairs[i], Value: pairs[i+1], Omitted: pairs[i+1] == ""})
		}
		return fields
	}
	const form, plain = "application/x-www-form-urlencoded; charset=utf-8", "application/json"
	for name, c := range map[string]struct {
		kind, body string
		want       []persist.KeptField
	}{
		"JSON":                   {plain, `{"amount":10.50,"meta":{"order":"o-1"},"lines":[{},{"sku":true}]}`, kept("/amount", "10.50", "/meta/order", "o-1", "/lines/1/sku", "true")},
		"JSON without a type":    {"", `{"amount":9007199254740993}`, kept("/amount", "9007199254740993")},
		"no scalar":              {plain, `{"amount":{"value":1},"meta":{"order":null},"lines":[0,{"sku":""}]}`, kept("/amount", "", "/meta/order", "", "/lines/1/sku", "")},
		"nothing of them":        {plain, `{"other":1}`, nil},
		"no JSON":                {plain, `amount=1`, nil},
		"no body":                {plain, ``, nil},
		"a form":                 {form, "amount=1+0&meta%5Border%5D=o%261&lines[1][sku]=x", kept("/amount", "1 0", "/meta/order", "o&1", "/lines/1/sku", "x")},
		"a form, twice":          {form, "amount=1&amount=2", kept("/amount", "")},
		"a form, other bytes":    {form, "amount=%ff&meta[order]=a%00b", kept("/amount", "", "/meta/order", "")},
		"a broken form":          {form, "amount=%zz", nil},
		"as long as may be":      {plain, `{"amount":"` + strings.Repeat("1", left) + `"}`, kept("/amount", strings.Repeat("1", left))},
		"a byte more":            {plain, `{"amount":"` + strings.Repeat("1", left+1) + `","meta":{"order":"o-1"}}`, kept("/amount", "", "/meta/order", "o-1")},
		"the second is too long": {plain, `{"amount":"12","meta":{"order":"` + strings.Repeat("1", left-1) + `"}}`, kept("/amount", "12", "/meta/order", "")},
		"a large body": {plain, `{"amount":1,"pad":"` + strings.Repeat("x", keepFromBytesMax) + `"}`,
			kept("/amount", "", "/meta/order", "", "/lines/1/sku", "", "/gone", "")},
	} {
		got := keptFields(pointers, http.Header{"Content-Type": {c.kind}}, []byte(c.body))
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := keptFields(nil, nil, []byte(`{"amount":1}`)); got != nil {
		t.Errorf("without KeepFields %+v is kept", got)
	}
}

// FuzzKeptFields: whatever the body, what is kept of it is a valid part of a record.
func FuzzKeptFields(f *testing.F) {
	f.Add("application/json", `{"amount":1,"a":{"b":"x"}}`, "/amount", "/a/b")
	f.Add("application/x-www-form-urlencoded", "a[b]=1&a[b]=2&amount=%00", "/a/b", "/amount")
	f.Fuzz(func(t *testing.T, kind, body, one, two string) {
		pointers := []string{one, two}
		if new(Secrets).CheckPointers(pointers) != nil {
			return
		}
		rec := persist.Record{
			ID: persist.ID{Key: "k"}, Method: "POST", Origin: "o", WireKey: "k", Fingerprint: make([]byte, 32),
			KeptFields: keptFields(pointers, http.Header{"Content-Type": {kind}}, []byte(body)),
		}
		if err := rec.Validate(); err != nil {
			t.Errorf("%+v: %v", rec.KeptFields, err)
		}
		for _, k := range rec.KeptFields {
			text, err := FieldsOf(http.Header{"Content-Type": {kind}}, []byte(body)).Text(k.Pointer)
			if !k.Omitted && (err != nil || text != k.Value || !utf8.ValidString(text)) || errors.Is(err, ErrNoField) {
				t.Errorf("%+v was kept, and the body has %q, %v", k, text, err)
			}
		}
	})
}
