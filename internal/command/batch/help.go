package batch

const batchHelp = `Send one operation for each row of FILE: CSV or TSV with a header row, or NDJSON
(one JSON object a line), packed with gzip or not; "-" is stdin. An NDJSON line
is sent byte for byte. A CSV row is sent as a JSON object of strings; --number
makes numbers of columns, and --body spells any JSON: inside its strings
"{column}" stands for a cell, as text; outside them {column:number} and
{column:bool} are a cell that is a number, digit for digit, or true or false, and
{column:minor} is an amount in the smallest unit of its --currency, 12.50 EUR as 1250;
{column:minor:EUR} names the currency. {{ and }} in a string are braces. No cell can
change what the template says around it; a line break within one is sent as a line
feed. --decimal , reads numbers as 1.234,50.

Where the profile's API takes forms, as Stripe's does, or with --form, rows are
sent as application/x-www-form-urlencoded: the columns as they are called, such
as metadata[order]; of the JSON that --body or an NDJSON line says the member b
of a as a[b], and the first of a list a as a[0]. --form=false sends JSON.

--key spells each row's idempotency key: {field} stands for a field's value, and
the text before the first one is the scope. Of an NDJSON line {/order/id} is a
nested field, by its JSON pointer; --url and --ordered-by take it too. Where the
profile's API takes UUIDs, one is made of each key, always the same. Where it
takes only those of version 4, or keys stand in the body or query, --key
'{column}' is the key as it stands in the row.

Every row is checked before anything is sent. Two rows with one key and the same
content are one operation; with other content they are an error. A batch that
cannot succeed stops: after --max-errors rows, tried in a row, that failed alike; after
20 rows whose keys stand for other requests, with none between that the journal knows as
it is, as of a wrong file (status 1); when no connection can be had; or after 10 rows in
a row that the journal's server did not let begin.

--sum adds up a column, exactly, by the currencies of --currency. The total stands
in --dry-run and in the summary, where each row is in one class and the classes add
up: done, accepted, duplicate, declined, invalid, rejected, mismatch, held, pending
(the same command goes on), unknown (in doubt, and not seen as pending: the line below
the summary says what helps), not looked at (this run did not come to it; an earlier
one may have ended it) and stopped before a send. The summary counts the requests of
rows that this run sent, and no --lookup. --expect-rows and --expect-sum refuse another
file before anything is sent. A file with a header and no rows is refused, too, unless
--expect-rows 0 says that it is right.

Each operation is in the journal, on disk, before its first byte leaves. Running the
same command again, also after a crash, finishes what is pending within the time for
which the API knows the keys, sends nothing that is confirmed, and prints the recorded
answers; one over 1 MiB is not kept. On a journal that lies on a server several batches
share the rows of a file. A file with rows that stand in another journal beside it, such
as a renamed copy, one with new rows on top, or one with a column more, asks before its
first run with a journal: their requests, byte for byte, or their keys. A file that was
run with --journal is to be run with the same one again: looked at are journals in files
beside it, or beside that one, and those elsewhere with which files of its folder were
run, which .oncehttp-journals there names (on a server 1,024 rows are looked for; one that
does not answer asks). All rows of a file up to 65,536 are looked for,
and of a larger one that many or half as many, evenly spread, which a line says; in each
folder 1,000 journals, the newest first, for ten seconds in all. If journals were left
out, it asks, too; one that cannot be read is warned about, and the file's own one
asks. A file asks also if half of
its rows were begun before under other keys, or any under the same key for another
--account, in this journal or one beside it: they are sent once more then. That is
searched in up to 65,536 rows, in the newest records of the 20 newest journals, and for
five seconds in others. A file whose journal was moved or deleted while a batch had it
open, as a file JOURNAL.lost says, asks, too. Where nobody can be asked, such files are
refused; --new-journal takes them as meant.

A run that leaves out a flag of the latest run with its --url and --key on the journal is
refused: --profile, --already-done or --ordered-by; so is one with another --key-header, or
none. The error names the way to do so on purpose. The journal keeps this of the latest
runs, as far as 256 bytes go. A file asks before it goes to a server at which none of its
rows are, where its own journal has them at another one (--other-server takes it as meant).

Rows that may be a mistake are warned about, with their lines, before anything is
sent: one that may be the total of others, an amount (of --sum, or "amount") that is
negative, zero, missing, no number or written as 1e3, or has more decimals than its
currency (of --currency, or "currency"), a key with blanks at its edges or with characters that nobody sees, or
with letters of two alphabets, keys that differ only in capitals, blanks, dashes or
characters that Unicode takes for one (a blank or a dash between two digits counts), and
rows that differ only in the amount, where that is part of the key. So is a --sum over several currencies
without --currency, and so are new rows of a file that operations of its own journal
have left, as after an edit of a key column. --strict refuses such files.

A line of JSON is printed for each row once its answer is durable: in the order
of the rows, except that rows which take long come later. Its "result" says what
came of the row for the business (oncehttp help results); a declined card is
"declined" there. The body is shown up to 1 MiB; a longer one, in
which --declined was not looked for, leaves the row unknown. Where a --declined makes declines
of rows that an earlier run told as done, the summary says so, and --generation sends
these only with --yes: a wrong one, true of each success, would pay them twice. So it does
where a --declined names the 2xx to a later send: an earlier one may have taken effect.
A row that repeats another one has its result, and is counted once more beside it. The first
Ctrl-C ends after the attempts on the wire, the second kills (which loses
nothing either); Ctrl-\ does the same.

Exit status: 0 all is done; 1 some rows were declined, invalid, mismatched, or
rejected for their credentials or for what they are; 2 the call or the input is
wrong and nothing was sent; 3 something is unknown, held or still to do, as where a
429, a page or an empty answer rejected it, or it was not sent. The summary names
the next step for each.`

const batchExamples = `  oncehttp batch orders.csv --url https://api.example.com/payments \
      --key 'order:{user}:{order_id}' --number amount -H @auth.txt
  oncehttp batch orders.csv --url https://api.example.com/payments --key 'order:{order_id}' \
      --body '{"amount":{amount:number},"meta":{"order":"{order_id}"}}'
  oncehttp batch - --url http://127.0.0.1:8080/payments --key 'evt:{id}' \
      --journal events.db < events.ndjson`
