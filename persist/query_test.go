package persist_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	r := valid()
	r.Seq, r.Account, r.Generated, r.NextAttempt = 7, "a|S=1", true, time.Unix(100, 0)
	for name, c := range map[string]struct {
		q    persist.Query
		want bool
	}{
		"unnamed account":  {persist.Query{}, false},
		"its name":         {persist.Query{Account: "a"}, true},
		"itself":           {persist.Query{Account: "a|S=1"}, true},
		"half its name":    {persist.Query{Account: "a|S"}, false},
		"more than itself": {persist.Query{Account: "a|S=1|T=2"}, false},
		"all":              {persist.Query{AllAccounts: true, Account: "b"}, true},
		"key":              {persist.Query{AllAccounts: true, Key: "k"}, true},
		"other key":        {persist.Query{AllAccounts: true, Key: "l"}, false},
		"state":            {persist.Query{AllAccounts: true, States: []persist.State{persist.StateHeld, persist.StatePending}}, true},
		"other state":      {persist.Query{AllAccounts: true, States: []persist.State{persist.StateHeld}}, false},
		"due":              {persist.Query{AllAccounts: true, DueBy: time.Unix(100, 0)}, true},
		"not due":          {persist.Query{AllAccounts: true, DueBy: time.Unix(100, -1)}, false},
		"unresolved":       {persist.Query{AllAccounts: true, Unresolved: make([]byte, 32)}, true},
		"other unresolved": {persist.Query{AllAccounts: true, Unresolved: bytes.Repeat([]byte{1}, 32)}, false},
		"any unresolved":   {persist.Query{AllAccounts: true, AnyUnresolved: true}, true},
		"both":             {persist.Query{AllAccounts: true, AnyUnresolved: true, Unresolved: bytes.Repeat([]byte{1}, 32)}, false},
		"after":            {persist.Query{AllAccounts: true, After: 6}, true},
		"not after":        {persist.Query{AllAccounts: true, After: 7}, false},
	} {
		if got := c.q.Match(&r); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	chosen, final, unreported := r, r, r
	chosen.Generated, final.State = false, persist.StateConfirmed
	unreported.State, unreported.Unreported = persist.StateConfirmed, true
	for _, q := range []persist.Query{{AllAccounts: true, Unresolved: make([]byte, 32)}, {AllAccounts: true, AnyUnresolved: true}} {
		if q.Match(&chosen) || q.Match(&final) {
			t.Errorf("%+v selects a chosen key or a finished record", q)
		}
		if !q.Match(&unreported) {
			t.Errorf("%+v does not select a finished record that nobody was told of", q)
		}
	}
}

func TestSweepVerdict(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		limits            persist.Limits
		generated, swept  bool
		age               time.Duration
		wantDrop, wantStr bool
	}{
		"within the window":         {persist.Limits{}, false, false, time.Hour - 1, false, false},
		"at the window's end":       {persist.Limits{}, false, false, time.Hour, false, true},
		"generated, within":         {persist.Limits{}, true, false, time.Hour - 1, false, false},
		"generated, at its end":     {persist.Limits{}, true, false, time.Hour, true, false},
		"answers kept for less":     {persist.Limits{Prune: true, KeepAnswer: time.Minute}, false, false, time.Minute, false, true},
		"answers not kept":          {persist.Limits{Prune: true, KeepAnswer: -1}, false, false, 0, false, true},
		"a tombstone, for ever":     {persist.Limits{}, false, true, 1 << 60, false, false},
		"a tombstone, for a time":   {persist.Limits{Prune: true, KeepKey: 2 * time.Hour}, false, true, 2*time.Hour - 1, false, false},
		"a tombstone, past it":      {persist.Limits{Prune: true, KeepKey: 2 * time.Hour}, false, true, 2 * time.Hour, true, false},
		"keys not kept":             {persist.Limits{Prune: true, KeepKey: -1}, false, false, time.Hour, true, false},
		"keys not kept, answer yet": {persist.Limits{Prune: true, KeepKey: -1}, false, false, time.Hour - 1, false, false},
	} {
		r := valid()
		r.State, r.Finished, r.Generated, r.Swept = persist.StateConfirmed, at, c.generated, c.swept
		if drop, strip := c.limits.Sweep(&r, at.Add(c.age)); drop != c.wantDrop || strip != c.wantStr {
			t.Errorf("%s: drop %t, strip %t; want %t, %t", name, drop, strip, c.wantDrop, c.wantStr)
		}
	}
	for name, c := range map[string]struct {
		limits            persist.Limits
		swept             bool
		age               time.Duration
		wantDrop, wantStr bool
	}{
		"unreported, answer not kept":  {persist.Limits{Prune: true, KeepAnswer: -1}, false, 0, false, true},
		"unreported, without answer":   {persist.Limits{Prune: true, KeepAnswer: -1}, true, time.Hour - 1, false, false},
		"unreported, past its window":  {persist.Limits{Prune: true, KeepAnswer: -1}, true, time.Hour, true, false},
		"unreported, answer kept long": {persist.Limits{Prune: true, KeepAnswer: 2 * time.Hour}, false, time.Hour, false, false},
		"unreported, both over":        {persist.Limits{Prune: true, KeepAnswer: 2 * time.Hour}, false, 2 * time.Hour, true, false},
		"unreported, keys not kept":    {persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}, true, time.Hour - 1, false, false},
	} {
		r := valid()
		r.State, r.Finished, r.Generated, r.Unreported, r.Swept = persist.StateConfirmed, at, true, true, c.swept
		if drop, strip := c.limits.Sweep(&r, at.Add(c.age)); drop != c.wantDrop || strip != c.wantStr {
			t.Errorf("%s: drop %t, strip %t; want %t, %t", name, drop, strip, c.wantDrop, c.wantStr)
		}
	}
	for name, c := range map[string]struct {
		limits            persist.Limits
		unreported, swept bool
		age               time.Duration
		wantDrop, wantStr bool
	}{
		"told, within the window":               {persist.Limits{}, false, false, time.Hour - 1, false, false},
		"told, at its end":                      {persist.Limits{}, false, false, time.Hour, false, true},
		"told, keys kept for a time":            {persist.Limits{Prune: true, KeepKey: 2 * time.Hour}, false, false, 2 * time.Hour, true, false},
		"told, answer and keys not kept":        {persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}, false, false, 0, true, false},
		"told, unreported":                      {persist.Limits{Prune: true, KeepAnswer: -1}, true, false, 0, false, true},
		"told, unreported, without answer":      {persist.Limits{Prune: true, KeepAnswer: -1}, true, true, time.Hour - 1, false, false},
		"told, unreported, past its window":     {persist.Limits{Prune: true, KeepAnswer: -1}, true, true, time.Hour, false, true},
		"told, unreported, keys not kept":       {persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}, true, true, time.Hour - 1, false, false},
		"told, unreported, keys not kept, over": {persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}, true, true, time.Hour, true, false},
		"told, reported without answer":         {persist.Limits{Prune: true, KeepAnswer: -1}, false, true, 0, false, true},
	} {
		r := valid()
		r.State, r.Finished, r.Generated, r.KeyTold, r.Unreported, r.Swept = persist.StateConfirmed, at, true, true, c.unreported, c.swept
		if drop, strip := c.limits.Sweep(&r, at.Add(c.age)); drop != c.wantDrop || strip != c.wantStr {
			t.Errorf("%s: drop %t, strip %t; want %t, %t", name, drop, strip, c.wantDrop, c.wantStr)
		}
	}
	r := valid()
	if drop, strip := (&persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}).Sweep(&r, at); drop || strip {
		t.Error("an unfinished record is swept")
	}
}
