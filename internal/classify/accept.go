package classify

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// AcceptsHTML reports whether a request with this header asks for HTML: its Accept names text/html, application/xhtml+xml or
// text/*, with a quality above zero (RFC 9110 section 12.5.1). Without an Accept, or with */*, it takes any type and asks for
// none.
func AcceptsHTML(h http.Header) bool {
	for name, lines := range h {
		if strings.EqualFold(name, "Accept") && slices.ContainsFunc(lines, namesHTML) {
			return true
		}
	}
	return false
}

// namesHTML reports whether a value of the header Accept names HTML with a weight above zero: then a page is an answer that the client wants.
func namesHTML(line string) bool {
	for entry := range strings.SplitSeq(line, ",") {
		kind, parameters, _ := strings.Cut(entry, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/html", "application/xhtml+xml", "text/*":
			if quality(parameters) > 0 {
				return true
			}
		}
	}
	return false
}

// quality returns the weight (q) among the parameters of an entry of Accept; 1 if there is none that can be read.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			return q
		}
	}
	return 1
}
