package request

import (
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

// IsGraphQL reports whether a record's request is a GraphQL operation: its path ends in /graphql, or its JSON body has a query that is a mutation.
func IsGraphQL(rec *persist.Record) bool {
	if strings.HasSuffix(strings.TrimSuffix(Path(rec.Target), "/"), "/graphql") {
		return true
	}
	texts := jsonpointer.Texts(rec.Body, "/query")
	return len(texts) == 1 && hasMutation(texts[0])
}

// hasMutation reports whether a GraphQL document has a mutation: the word at its top level, outside of comments and texts.
func hasMutation(document string) bool {
	depth, word := 0, strings.Builder{}
	for i := 0; i < len(document); i++ {
		c := document[i]
		switch {
		case c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
			word.WriteByte(c)
			continue
		case depth == 0 && word.String() == "mutation":
			return true
		case c == '#':
			for i < len(document) && document[i] != '\n' {
				i++
			}
		case c == '"':
			for i++; i < len(document) && document[i] != '"'; i++ {
				if document[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '(':
			depth++
		case c == '}' || c == ')':
			depth--
		}
		word.Reset()
	}
	return false
}
