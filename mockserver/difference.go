package mockserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	// imageBytesMax bounds the part of a body that is kept for comparison.
	imageBytesMax = 64 << 10
	// pointersMax bounds the number of places in a difference.
	pointersMax = 8
	// nameBytesMax bounds each name in a difference.
	nameBytesMax = 60
)

// image is the kept form of a key's first request, to say where a later one differs from it.
type image struct {
	method, path, query, contentType string
	body                             []byte // the first imageBytesMax bytes at most
	size                             int    // of the whole body, in bytes
}

// newImage returns the image of a request: the parts of it that are compared, with the beginning of its body, to tell later how a repeat differs. It
// shares the memory of body; kept copies it.
func newImage(r *http.Request, body []byte) image {
	return image{
		method: r.Method, path: r.URL.EscapedPath(), query: r.URL.RawQuery, contentType: r.Header.Get("Content-Type"),
		body: body[:min(len(body), imageBytesMax)], size: len(body),
	}
}

// kept returns the image with a copy of its part of the body, so that keeping it does not keep the request's whole
// body in memory.
func (i image) kept() image {
	i.body = bytes.Clone(i.body)
	return i
}

// differences says where the second request differs from the first: names, lengths and places, never a value. The
// requests must differ (their fingerprints do); a difference behind the kept part of the bodies is named as such.
func (first image) differences(second image) string {
	var all []string
	if first.method != second.method {
		all = append(all, fmt.Sprintf("method (%s, then %s)", clip(first.method), clip(second.method)))
	}
	if first.path != second.path {
		all = append(all, "path ("+place([]byte(first.path), []byte(second.path), len(first.path), len(second.path))+")")
	}
	if first.query != second.query {
		all = append(all, "query ("+queryDifference(first.query, second.query)+")")
	}
	if first.contentType != second.contentType {
		all = append(all, "Content-Type ("+typeDifference(first.contentType, second.contentType)+")")
	}
	if first.size != second.size || !bytes.Equal(first.body, second.body) {
		all = append(all, "body ("+place(first.body, second.body, first.size, second.size)+bodyDifference(first, second)+")")
	}
	if len(all) == 0 {
		all = append(all, fmt.Sprintf("body (behind its first %d bytes)", imageBytesMax))
	}
	return strings.Join(all, ", ")
}

// place describes a difference of two texts: both lengths, sizeA and sizeB, and the first offset at which a and b differ. a and b may be the
// beginnings of longer texts; then there may be no difference in them.
func place(a, b []byte, sizeA, sizeB int) string {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	if at == imageBytesMax {
		return fmt.Sprintf("%d and %d bytes, no difference in the first %d", sizeA, sizeB, at)
	}
	return fmt.Sprintf("%d and %d bytes, the first difference at offset %d", sizeA, sizeB, at)
}

// queryDifference says in words in which parameters two queries differ; one that cannot be parsed counts as spelled otherwise.
func queryDifference(a, b string) string {
	first, errA := url.ParseQuery(a)
	second, errB := url.ParseQuery(b)
	names := different(first, second)
	if errA != nil || errB != nil || len(names) == 0 {
		return "the same parameters, spelled or ordered otherwise"
	}
	return "parameters " + list(names)
}

// typeDifference says which part of two Content-Type values differs: the media type, parameters, or only the
// spelling.
func typeDifference(a, b string) string {
	first, firstParameters, errA := mime.ParseMediaType(a)
	second, secondParameters, errB := mime.ParseMediaType(b)
	names := different(firstParameters, secondParameters)
	switch {
	case errA != nil || errB != nil || first != second:
		return "media type"
	case len(names) == 0:
		return "spelling"
	default:
		return "parameter " + list(names)
	}
}

// different returns the names with different values in the two maps, and those in one of them only, sorted.
func different[V any](a, b map[string]V) []string {
	var names []string
	for name := range a {
		if other, found := b[name]; !found || !reflect.DeepEqual(a[name], other) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, found := a[name]; !found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// bodyDifference says in words where two JSON bodies differ; empty if one is no JSON, or was not kept whole.
func bodyDifference(a, b image) string {
	first, okA := decoded(a)
	second, okB := decoded(b)
	if !okA || !okB {
		return ""
	}
	pointers := jsonDifference("", first, second)
	if len(pointers) == 0 {
		return "; the same JSON, spelled otherwise"
	}
	return "; JSON at " + list(pointers)
}

// decoded returns the body as JSON; false if it is none, or was not kept whole.
func decoded(i image) (value any, ok bool) {
	if len(i.body) < i.size || !json.Valid(i.body) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(i.body))
	decoder.UseNumber()
	return value, decoder.Decode(&value) == nil
}

// jsonDifference lists JSON pointers to the differences of two values, each prefixed with at: members by name,
// elements by index. Equal values give none.
func jsonDifference(at string, a, b any) []string {
	if object, isObject := a.(map[string]any); isObject {
		if other, same := b.(map[string]any); same {
			return memberDifference(at, object, other)
		}
	}
	if array, isArray := a.([]any); isArray {
		if other, same := b.([]any); same {
			return memberDifference(at, numbered(array), numbered(other))
		}
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{at}
}

// memberDifference returns JSON pointers to the members in which two objects differ. at is the pointer to the objects themselves.
func memberDifference(at string, a, b map[string]any) []string {
	var pointers []string
	for _, name := range different(a, b) {
		below := at + "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
		first, inA := a[name]
		second, inB := b[name]
		if inA && inB {
			pointers = append(pointers, jsonDifference(below, first, second)...)
		} else {
			pointers = append(pointers, below)
		}
	}
	return pointers
}

// numbered returns an array as a map from its indexes in decimal.
func numbered(array []any) map[string]any {
	byIndex := make(map[string]any, len(array))
	for i, value := range array {
		byIndex[strconv.Itoa(i)] = value
	}
	return byIndex
}

// list joins names with commas: at most pointersMax of them, each clipped, and the number of the rest.
func list(names []string) string {
	short := make([]string, 0, pointersMax)
	for _, name := range names[:min(len(names), pointersMax)] {
		short = append(short, clip(name))
	}
	if rest := len(names) - len(short); rest > 0 {
		short = append(short, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(short, ", ")
}

// clip bounds a name to nameBytesMax bytes, and quotes it if it holds anything but visible ASCII.
func clip(name string) string {
	if len(name) > nameBytesMax {
		name = name[:nameBytesMax] + "…"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' && r != '…' }) {
		return strconv.Quote(name)
	}
	return name
}
