package input

import (
	"testing"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	document := []byte(` {"a":[10,{"":"empty"},[]],"b":"s"}`)
	for pointer, want := range map[string]string{
		"/a/0": "10", "/a/1/": `"empty"`, "/a/2": "[]", "/b": `"s"`, "/a/3": "", "/a/00": "", "/a/-1": "", "/a/-": "", "/a/+0": "",
		"/b/0": "", "/": "", "/a/x": "", "/A": "",
	} {
		if got, err := follow(document, pointer); string(got) != want || err != nil {
			t.Errorf("%s leads to %q, %v; want %q", pointer, got, err, want)
		}
	}
}
