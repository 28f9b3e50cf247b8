package results

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// This file looks for codes of errors in answers of 2xx, and for words against a success in XML.

// codeNames are the names of members for the code of an error, in small letters. A member "code" may as well be an id, or the code of a currency.
var codeNames = []string{"error_code", "errorcode", "error-code", "err_code", "errcode"}

// fineWords are the first words of such members that say that there was no error.
var fineWords = []string{"success", "successful", "succeeded", "ok", "none", "noerror", "null", "approved", "accepted", "completed", "created"}

// resultNames are the names of members for the code of a result at the top of an answer, in small letters.
var resultNames = []string{
	"code", "resultcode", "result_code", "responsecode", "response_code", "returncode", "return_code", "statuscode", "status_code",
}

// codeWords are words of a member "code" against a success, beside those of doubtWords that leave nothing open.
var codeWords = []string{
	"insufficient", "exceeded", "unauthorized", "forbidden", "blocked", "expired", "missing", "duplicate", "not", "unavailable", "timeout", "err", "unknown",
}

// doubtOfCode returns the code of an error among the members of an object, such as /code=E_LIMIT; "" if there is none. before is the pointer to the object: a
// member of resultNames, and a number as "status", count at the top alone.
func doubtOfCode(before string, object map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		text, found := jsonpointer.Text([]any{object[name]}, "/0")
		if _, isBool := object[name].(bool); !found || isBool || !isPlain(name) || !isPlain(text) {
			continue
		}
		_, isNumber := object[name].(json.Number)
		low := strings.ToLower(name)
		isResult := slices.Contains(resultNames, low) || low == "status" && isNumber
		if isErrorCode(name, text) || before == "" && isResult && isBadCode(text, isNumber) {
			return pointerTo(before, name) + "=" + text
		}
	}
	return ""
}

// isErrorCode reports whether a member with this name and text has the code of an error. Zeros, 200 and words such as ok (fineWords) are codes of success.
func isErrorCode(name, text string) bool {
	text, split := strings.TrimSpace(text), wordsOf(text)
	isFine := len(split) > 0 && slices.Contains(fineWords, split[0]) || slices.Equal(split, []string{"no", "error"})
	return slices.Contains(codeNames, strings.ToLower(name)) && strings.Trim(text, "0") != "" && text != "200" && !isFine
}

// isBadCode reports whether the text of a member "code" speaks of an error. An id, or the code of a currency, does not. isNumber: it is a number in the
// JSON, and no string; only then a negative one counts.
func isBadCode(text string, isNumber bool) bool {
	if n, err := strconv.Atoi(text); err == nil {
		return n >= 400 && n < 600 || isNumber && n < 0
	}
	upper := strings.ToUpper(text)
	return strings.HasPrefix(upper, "E_") || slices.ContainsFunc(wordsOf(text), func(w string) bool {
		return slices.Contains(codeWords, w) || slices.Contains(doubtWords, w) && !isOpen(w)
	})
}

// doubtOfXML returns the first element of XML against a success, such as <status>FAILED</status>; "" if there is none. Elements with others inside do not
// count.
func doubtOfXML(body []byte) string {
	dec := xml.NewDecoder(bytes.NewReader(body))
	dec.Strict = false
	name, text := "", ""
	for {
		token, err := dec.Token()
		if err != nil {
			return "" // its end, or no XML
		}
		switch t := token.(type) {
		case xml.StartElement:
			name, text = t.Name.Local, ""
		case xml.CharData:
			text += string(t[:min(len(t), 100)])
		case xml.EndElement:
			text = strings.TrimSpace(text)
			if t.Name.Local == name && isPlain(name) && isPlain(text) && isBadElement(name, text) {
				return "<" + name + ">" + text + "</" + name + ">"
			}
			name, text = "", ""
		}
	}
}

// isBadElement reports whether an element of XML with this name and text says that something went wrong. It is one for an error's code, or for an end: status,
// state, outcome and result (the first four of doubtNames) may also be the last part of a longer name such as paymentstatus, success and ok (the others) may
// not.
func isBadElement(name, text string) bool {
	split := wordsOf(name)
	if len(split) == 0 || text == "" {
		return false
	}
	last := func(end string) bool { return strings.HasSuffix(split[len(split)-1], end) }
	is := func(w string) bool { return slices.Contains(doubtWords, w) }
	return isErrorCode(name, text) || slices.ContainsFunc(doubtNames[:4], last) && slices.ContainsFunc(wordsOf(text), is) ||
		slices.Contains(doubtNames[4:], split[len(split)-1]) && slices.ContainsFunc(wordsOf(text), is)
}
