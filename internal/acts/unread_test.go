package acts

import "testing"

// TestAnswerReader: only a client with the record's facts and means reads an answer, and only if nothing is missing in it.
func TestAnswerReader(t *testing.T) {
	t.Parallel()
	for reader, want := range map[AnswerReader]bool{
		{Knows: true, Whole: true}:              true,
		{Whole: true}:                           false,
		{Knows: true}:                           false,
		{Knows: true, Whole: true, Need: Newer}: false,
	} {
		if got := reader.Reads(); got != want {
			t.Errorf("%+v: %t, want %t", reader, got, want)
		}
	}
}
