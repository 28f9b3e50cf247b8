package request

import (
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

// IsGraphQL reports whether a record's request is a GraphQL operation: its path ends in /graphql, or the query of its JSON body
// has a mutation.
func IsGraphQL(rec *persist.Record) bool {
	if atGraphQL(rec.Target) {
		return true
	}
	texts := jsonpointer.Texts(rec.Body, "/query")
	return len(texts) == 1 && hasMutation(texts[0])
}

// MayBeGraphQL reports whether a record's request has a trait of GraphQL: a segment of its path begins with graphql or is gql, or its
// JSON body has a query that begins as a document, or a persisted query. A plain API may have one, too.
func MayBeGraphQL(rec *persist.Record) bool {
	for segment := range strings.SplitSeq(strings.ToLower(Path(rec.Target)), "/") {
		if segment == "gql" || strings.HasPrefix(segment, "graphql") {
			return true
		}
	}
	if texts := jsonpointer.Texts(rec.Body, "/query"); len(texts) == 1 && startsDocument(texts[0]) {
		return true
	}
	return len(jsonpointer.Texts(rec.Body, "/extensions/persistedQuery/sha256Hash")) == 1
}

// startsDocument reports whether a text begins as a GraphQL document, comments and commas (they mean nothing there) aside.
func startsDocument(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n,\ufeff")
		if !strings.HasPrefix(text, "#") {
			break
		}
		_, text, _ = strings.Cut(text, "\n")
	}
	if strings.HasPrefix(text, "{") {
		return true
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		return false
	}
	switch text[:end] {
	case "query", "mutation", "subscription", "fragment":
		return strings.ContainsRune(text, '{')
	}
	return false
}

// atGraphQL reports whether the path of a target ends in /graphql.
func atGraphQL(target string) bool {
	return strings.HasSuffix(strings.TrimSuffix(Path(target), "/"), "/graphql")
}

// IsQuery reports whether a request is a GraphQL operation without an effect: its path ends in /graphql, and its JSON body has
// one document, without a mutation. In case of doubt it is none.
func IsQuery(target string, body []byte) bool {
	if !atGraphQL(target) {
		return false
	}
	texts := jsonpointer.Texts(body, "/query")
	if len(texts) != 1 || texts[0] == "" {
		return false
	}
	switch document := texts[0]; {
	case !strings.Contains(document, "mutation"):
		return true
	case strings.Contains(document, `"""`): // quotes inside of such a text are not told from its end
		return false
	default:
		return !hasMutation(document)
	}
}

// hasMutation reports whether a GraphQL document has a mutation: the word at its top level, outside of comments
// and texts. It scans bytes, and does not parse; block texts (""") must not hold quotes, see IsQuery. Another name "mutation" at the top level, as of a
// fragment, counts, too: in doubt there is one.
func hasMutation(document string) bool {
	depth, word := 0, strings.Builder{}
	for i := 0; i < len(document); i++ {
		c := document[i]
		switch {
		case isNameByte(c):
			word.WriteByte(c)
			continue
		case depth == 0 && word.String() == "mutation":
			return true
		case c == '#':
			i = endOfComment(document, i)
		case c == '"':
			i = endOfText(document, i)
		case c == '{' || c == '(':
			depth++
		case c == '}' || c == ')':
			depth--
		}
		word.Reset()
	}
	return false
}

// isNameByte reports whether a byte may stand in a name of GraphQL.
func isNameByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// endOfComment returns the index of the end of the line with the comment at i.
func endOfComment(document string, i int) int {
	for i < len(document) && document[i] != '\n' && document[i] != '\r' {
		i++
	}
	return i
}

// endOfText returns the index of the closing quote of a text, or an index beyond the document if there is none. i is the index of the opening quote.
func endOfText(document string, i int) int {
	for i++; i < len(document) && document[i] != '"'; i++ {
		if document[i] == '\\' {
			i++
		}
	}
	return i
}
