package audit

// longHelp is the text of the command's help above its flags.
const longHelp = `Hold the operations of a journal against exports of the provider: CSV with a
header row, or NDJSON. A row belongs to the operation whose key stands in the
column --match, or whose reference, found in its request at --reference, does.
It lists

  missing        done here, and not in the exports; of a final answer, with what is left to do
  not-done       done here, and its row there has a status that --where does not select,
                 such as pending
  unresolved     pending, held or abandoned here, and not in the exports
  twice          more than one row for one operation, or for one reference, or a row each
                 for a key that counts as without effect here and for its next generation
  amount         the amounts or currencies differ
  generations    a later generation of a key and an earlier one both count as done here,
                 such as after journal declined --forget
  settle         done there, and unknown here; with the command that says so
  conflict       done there, and declined, rejected or absent here; not where another
                 operation of the same reference, such as the next generation, is done
  failed         a row that says failed, refunded, returned or the like, without --where
  unclear        rows with a status that is no known word of success or failure, such as
                 pending, without --where and --all-rows; one finding for a column
  foreign        a row of no operation here; after journal restored, maybe of one that the
                 journal has lost
  not-auditable  what would be compared is not known any more; it says why
  edge           missing or foreign, but within --edge of --since or --until

With KEY only those operations are compared; it may be a pattern, as in journal list. Rows
of the other operations here are then left out of the findings, and not of the total there.

What is unresolved here and absent there is always listed. Only rows that --where
selects count as done: of one column any of its values, of several columns all.
Without --where an export may hold payments that failed, so that no command to settle
is printed; --all-rows says that each row is of something done. No command is printed
either where more than one row, another amount or another currency is there, nor by a
row whose status, state, outcome or result says failed: it is a finding, and in no
total, until --where names that column.

With --amount, totals of our operations by class and of the export's rows follow, one
for each currency, in major units where the sides have different ones. A row without a
currency has that of its operation; what has none is not added up beside several.
Amounts are decimals. --unit and --our-unit say which side has cents. With --currency
they must be of one currency, ours being at --our-currency. --decimal says how the
export writes 1.234,50; without it a number that may be read in two ways is a fault.
Blanks around a cell do not count. All faults of the exports are said at once.

Of a request that was pruned, --reference and --amount find what batch or send was
told to keep with --keep-field. A pruned operation under a key that was generated
is gone, so that its row is foreign.

What it finds is evidence as of the export. Exit status: 0 nothing found; 6 something
found (edges aside), or no operation had a row and all that is missing is within --edge;
2 the call or an export is wrong.`

// examples are the examples of its help.
const examples = `  oncehttp audit --journal orders.csv.oncehttp.db --against payouts.csv --match metadata_key \
      --where status=succeeded --amount /amount --amount-column Amount
  oncehttp audit --journal payments.db --against jan.csv --against feb.csv --match order \
      --reference /order_id --time created --since 2026-01-01T00:00:00Z --until 2026-03-01T00:00:00Z
  oncehttp audit 'order:*' --journal postgres://shop@db/journal --against jan.csv --match key`
