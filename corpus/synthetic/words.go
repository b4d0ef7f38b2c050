package synthetic

import (
	_ "embed"
	"encoding/json"
)

//go:embed words.json
var wordsJSON []byte

// words are the lists that texts are made of. As they stand they belong to the generator's version.
var words = func() (w struct {
	English, Spanish, German, Japanese, Chinese, Arabic []string // early words come more often than late ones
	Emojis                                              []string
	Oddities                                            []string // what trips careless escaping: quotes, backslashes, markup, text direction marks, combining accents
	Hashtags                                            []string // in falling popularity, in lower case as t tags hold them (NIP-24)
	Relays                                              []string // hosts of relays that the corpus mentions, under a domain that cannot exist
	Syllables                                           []string // of names and rare words, so that texts have more words than any list
}) {
	if err := json.Unmarshal(wordsJSON, &w); err != nil {
		panic("synthetic: words.json: " + err.Error())
	}
	return w
}()

// language is what a note is written in.
type language struct {
	words  []string
	gap    string // between words
	stops  []string
	quotes [2]string
	coined bool // made-up words may stand among its own
}

var languages = []weighted[*language]{
	{74, &english}, {6, &spanish}, {4, &german}, {7, &japanese}, {4, &chinese}, {5, &arabic},
}

var english = language{
	gap: " ", stops: []string{".", ".", ".", ".", "!", "?", "…", ":"}, quotes: [2]string{`"`, `"`}, coined: true, words: words.English,
}

var spanish = language{
	gap: " ", stops: []string{".", ".", ".", "!", "?", "…"}, quotes: [2]string{"«", "»"}, coined: true, words: words.Spanish,
}

var german = language{
	gap: " ", stops: []string{".", ".", ".", "!", "?", " –"}, quotes: [2]string{"„", "“"}, coined: true, words: words.German,
}

var japanese = language{
	stops: []string{"。", "。", "。", "！", "？", "…", "w"}, quotes: [2]string{"「", "」"}, words: words.Japanese,
}

var chinese = language{
	stops: []string{"。", "。", "。", "！", "？", "……", "；"}, quotes: [2]string{"“", "”"}, words: words.Chinese,
}

var arabic = language{
	gap: " ", stops: []string{".", ".", "!", "؟", "…", "،"}, quotes: [2]string{"«", "»"}, words: words.Arabic,
}

var reactions = []weighted[string]{
	{56, "+"}, {12, "❤️"}, {8, "🤙"}, {6, "🔥"}, {5, "😂"}, {3, "🫂"}, {2, "👀"}, {2, "-"}, {1, "👩‍💻"}, {5, ":shaka:"},
}

var zapAmounts = []weighted[string]{
	{38, "21"}, {18, "100"}, {12, "42"}, {10, "500"}, {10, "1000"}, {5, "210"}, {4, "5000"}, {2, "10000"}, {1, "100000"},
}

var zapComments = []weighted[string]{
	{62, ""}, {8, "⚡"}, {6, "great note!"}, {5, "Zap 🤙"}, {4, "thank you"}, {4, "❤️"}, {3, `so "true"`}, {3, "ありがとう！"}, {2, "شكراً"}, {2, "onward :)"},
	{1, "C:\\> zap\nsecond line"},
}
