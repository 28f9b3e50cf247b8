package request

import (
	"encoding/json"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestIsGraphQL: by the path, or by a mutation in the body.
func TestIsGraphQL(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]bool{
		"mutation { pay(id: 1) { id } }": true, "mutation Pay($id: ID!) { pay(id: $id) { id } }": true, "\n # a comment\nmutation{pay}": true,
		"fragment F on P { id } mutation { pay { ...F } }": true, "mutation": false, "query { mutation { id } }": false, "{ pay(mutation: 1) { id } }": false,
		"# mutation {\nquery { id }": false, `query { find(text: "} mutation {") { id } }`: false, `query { find(text: "\"} mutation {") { id } }`: false,
		"query Mutation { id }": false, "mutations { id }": false, "": false,
	} {
		text, _ := json.Marshal(map[string]string{"query": document})
		if got := IsGraphQL(&persist.Record{Target: "/api", Body: text}); got != want {
			t.Errorf("%s: %t", document, got)
		}
	}
	for target, want := range map[string]bool{"/admin/api/2026-04/graphql": true, "/graphql/?x=1": true, "/graphql.json": false, "/graphql/pay": false, "/x?y=/graphql": false} {
		if got := IsGraphQL(&persist.Record{Target: target, Body: []byte(`{"query":1}`)}); got != want {
			t.Errorf("%s: %t", target, got)
		}
	}
}

// TestMayBeGraphQL: by a segment of the path, a document in the body, or the hash of a persisted one.
func TestMayBeGraphQL(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"query":"query { pay { id } }"}`: true, `{"query":"query Pay($i: ID!) { pay(id: $i) { id } }"}`: true, `{"query":" # why\n{ pay }"}`: true, `{"query":"fragment F on P { id } { pay { ...F } }"}`: true,
		`{"query":"subscription{a}"}`: true, `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ab"}}}`: true,
		`{"query":"blue shoes"}`: false, `{"query":"query"}`: false, `{"query":"queryable { x }"}`: false, `{"query":"mutation of genes"}`: false, `{"query":{"match":{"a":"b"}}}`: false, `{"query":1}`: false, `{"id":"1"}`: false,
		`{"a":{"query":"{ pay }"}}`: false, `a=1`: false, ``: false,
	} {
		if got := MayBeGraphQL(&persist.Record{Target: "/api", Body: []byte(body)}); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
	for target, want := range map[string]bool{"/graphql.json": true, "/GraphQL/v1/pay": true, "/v1/gql?x=1": true, "/graphql-proxy": true, "/gqlx": false, "/pay?to=/graphql": false, "/mygraphql": false} {
		if got := MayBeGraphQL(&persist.Record{Target: target, Body: []byte(`{"id":"1"}`)}); got != want {
			t.Errorf("%s: %t", target, got)
		}
	}
}
