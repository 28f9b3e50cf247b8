package redis

import (
	"context"
	"embed"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var lua embed.FS

// script is one script. It gets all keys of one bucket.
type script struct{ *goredis.Script }

// scripts are the scripts of a journal.
type scripts struct {
	open, fact *goredis.Script // those with a key of their own

	name, begin, change, amend, assign, forget, report, sweep, raise, time, claim, renew, turns, owe script
}

// text returns the text of a Lua script that is built into the program.
func text(name string) string {
	b, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it was built without
	}
	return string(b)
}

// loadScripts reads the scripts. All but open and fact begin with the prelude.
func loadScripts() scripts { return makeScripts(text) }

// makeScripts returns all scripts, with their texts by name. Those that work on a bucket begin with a common part, the prelude.
func makeScripts(text func(name string) string) scripts {
	load := func(name string) script { return script{goredis.NewScript(text("prelude") + text(name))} }
	return scripts{
		open: goredis.NewScript(text("open")), fact: goredis.NewScript(text("fact")),
		name: load("name"), begin: load("begin"), change: load("change"), amend: load("amend"), assign: load("assign"), forget: load("forget"), report: load("report"), sweep: load("sweep"), raise: load("raise"), time: load("time"), claim: load("claim"), renew: load("renew"),
		turns: load("turns"), owe: load("owe"),
	}
}

// run runs a script on a bucket: by its hash, or with its text if the server does not know it. It returns the first
// word of the script's answer, and the rest.
func (j *Journal) run(ctx context.Context, s script, b *bucket, args ...any) (word string, rest []any, err error) {
	return split(s.Run(ctx, j.client, b.keys, args...))
}

// split takes the answer of a script apart: the first element is a word that says how it ended, and the rest are values.
func split(cmd *goredis.Cmd) (word string, rest []any, err error) {
	answer, err := cmd.Slice()
	if err != nil || len(answer) == 0 {
		return "", nil, err
	}
	word, _ = answer[0].(string)
	return word, answer[1:], nil
}

// runEach runs a script on each of the buckets, on all at once, and returns each answer without its first word. A server that does not know the script by its
// hash (NOSCRIPT) gets its text, all buckets again. So it may run twice on any of them, and must do no harm then.
func (j *Journal) runEach(ctx context.Context, s script, buckets []*bucket, args func(i int) []any) (rests [][]any, err error) {
	if len(buckets) == 0 {
		return nil, nil
	}
	err = j.attempt(ctx, func(ctx context.Context) (err error) {
		if rests, err = j.runOn(ctx, s.EvalSha, buckets, args); goredis.HasErrorPrefix(err, "NOSCRIPT") {
			rests, err = j.runOn(ctx, s.Eval, buckets, args)
		}
		return err
	})
	return rests, err
}

// how is one of the two ways to run a script.
type how func(ctx context.Context, c goredis.Scripter, keys []string, args ...any) *goredis.Cmd

// runOn sends a script to several buckets at once, and returns the values of each answer. It is one try of runEach. run tells how the script is
// named: by its text or by its hash.
func (j *Journal) runOn(ctx context.Context, run how, buckets []*bucket, args func(i int) []any) ([][]any, error) {
	answers, err := j.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, b := range buckets {
			run(ctx, p, b.keys, args(i)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rests := make([][]any, len(buckets))
	for i, answer := range answers {
		if _, rests[i], err = split(answer.(*goredis.Cmd)); err != nil {
			return nil, err
		}
	}
	return rests, nil
}

// numberAt reads a number at a place of a script's answer. It is an error if there is none.
func numberAt(answer []any, at int) (uint64, error) {
	if at < len(answer) {
		switch v := answer[at].(type) {
		case int64:
			return uint64(v), nil
		case string:
			return strconv.ParseUint(v, 10, 64)
		}
	}
	return 0, fmt.Errorf("an answer without a number: %v", answer)
}

// bytesOf returns a string in an answer of Redis as bytes; nil if the value is absent, or no string.
func bytesOf(v any) []byte {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	return []byte(s)
}

// everyPart are the letters of a record's parts, in the order of entryOf: head, intent,
// progress, body, body of the answer.
const everyPart = "hipba"

// fields returns the names of a record's fields in the Redis hash of its bucket, one for each letter in which. A letter stands for a part of the record: h
// its head, i its intent, p its progress, b its body, a its answer.
func fields(id, which string) []string {
	names := make([]string, len(which))
	for i, part := range which {
		names[i] = string(part) + id
	}
	return names
}

// entryOf makes an entry of its parts as Redis returns them, in their order; parts at the end may be missing. It returns nil if there is no such
// record.
func entryOf(id string, values []any) *entry {
	if len(values) == 0 || values[0] == nil {
		return nil
	}
	e := &entry{id: id}
	for i, part := range []*[]byte{&e.head, &e.intent, &e.progress, &e.body, &e.answer} {
		if i < len(values) {
			*part = bytesOf(values[i])
		}
	}
	return e
}
