package classify

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
)

// isCut reports whether a 2xx lacks its end: its content coding ends early, or its JSON does. If only the end of the connection ends the body (it is not Framed
// by a length or in chunks), two more bodies count as cut: XML with an open element, and an empty body declared as JSON or XML.
func isCut(a *Answer) bool {
	kind := a.Header.Get("Content-Type")
	switch {
	case a.CodingCut, a.Whole && endsEarly(a.Body):
		return true
	case a.Framed || !a.Whole:
		return false
	case len(bytes.TrimSpace(a.Body)) == 0:
		return a.Status != http.StatusNoContent && a.Status != http.StatusResetContent && (isJSON(kind) || isXML(kind))
	case isXML(kind) || bytes.HasPrefix(bytes.TrimSpace(a.Body), []byte("<?xml")):
		return xmlEndsEarly(a.Body)
	}
	return false
}

// endsEarly reports whether a text begins as a JSON object or array and ends within it: it was cut off.
func endsEarly(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' && text[0] != '[' || json.Valid(text) {
		return false
	}
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&value)
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// xmlEndsEarly reports whether an XML document ends before its root element is closed. It is false for a text without readable XML. All characters but ASCII
// count as letters, so that the encoding does not matter; UTF-16 cannot be read.
func xmlEndsEarly(text []byte) bool {
	ascii := bytes.Map(func(c rune) rune {
		if c >= 0x80 {
			return 'x'
		}
		return c
	}, text)
	d := xml.NewDecoder(bytes.NewReader(ascii))
	d.Strict = false
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for depth, begun := 0, false; ; {
		token, err := d.RawToken()
		switch token := token.(type) {
		case xml.CharData:
			if !begun && len(bytes.TrimSpace(token)) > 0 {
				return false // plain text
			}
		case xml.StartElement:
			depth, begun = depth+1, true
		case xml.EndElement:
			depth--
		}
		switch {
		case begun && depth == 0:
			return false
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			// Package xml has no error value for it.
			return strings.Contains(err.Error(), "unexpected EOF")
		}
	}
}

// isJSON reports whether a Content-Type is JSON.
func isJSON(contentType string) bool {
	kind := mediaType(contentType)
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}
