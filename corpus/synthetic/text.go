package synthetic

import "strconv"

// noteLengths is how long notes are, in words: mostly a line or two, seldom an essay.
var noteLengths = []weighted[[2]int]{
	{6, [2]int{1, 2}}, {34, [2]int{3, 15}}, {34, [2]int{16, 40}}, {18, [2]int{41, 120}}, {7, [2]int{121, 300}}, {1, [2]int{301, 700}},
}

// appendNote appends the text of a note, without hashtags and mentions.
func appendNote(dst []byte, r *randStream) []byte {
	length := pickWeighted(r, noteLengths)
	return appendProse(dst, r, pickWeighted(r, languages), r.between(length[0], length[1]), true)
}

// appendProse appends so many words as sentences; breaks says whether lines may end between them.
func appendProse(dst []byte, r *randStream, lang *language, words int, breaks bool) []byte {
	for left := words; left > 0; {
		sentence := min(left, r.between(3, 14))
		left -= sentence
		start := len(dst)
		for i := range sentence {
			if i > 0 {
				dst = append(dst, lang.gap...)
			}
			dst = appendWord(dst, r, lang)
		}
		capitalize(dst[start:])
		dst = append(dst, pickOne(r, lang.stops)...)
		if left == 0 {
			break
		}
		switch x := r.below(100); {
		case breaks && x < 10:
			dst = append(dst, '\n')
		case breaks && x < 20:
			dst = append(dst, '\n', '\n')
		default:
			dst = append(dst, lang.gap...)
		}
	}
	return dst
}

func appendWord(dst []byte, r *randStream, lang *language) []byte {
	switch x := r.below(100); {
	case x < 4:
		return append(dst, pickOne(r, words.Emojis)...)
	case x < 6:
		return strconv.AppendInt(dst, int64(r.below(r.below(100_000)+1)), 10)
	case x < 7:
		return append(dst, pickOne(r, words.Oddities)...)
	case x < 9:
		dst = append(dst, lang.quotes[0]...)
		dst = append(dst, pickOne(r, lang.words)...)
		return append(dst, lang.quotes[1]...)
	case x < 17 && lang.coined:
		return appendCoined(dst, r)
	}
	// The product of two uniform choices leans towards the front of the list.
	return append(dst, lang.words[r.below(r.below(len(lang.words))+1)]...)
}

// appendCoined appends a made-up word of two to four syllables.
func appendCoined(dst []byte, r *randStream) []byte {
	for range r.between(2, 4) {
		dst = append(dst, pickOne(r, words.Syllables)...)
	}
	return dst
}

// capitalize makes an ASCII letter at the start of text a capital.
func capitalize(text []byte) {
	if len(text) > 0 && 'a' <= text[0] && text[0] <= 'z' {
		text[0] -= 'a' - 'A'
	}
}

// Articles hold 2 to 20 KB (NIP-23). They end with the first paragraph past their size, an edit
// adds one more, and a paragraph is always shorter than minArticle.
const (
	minArticle = 2 << 10
	maxArticle = 20 << 10
)

// appendArticle appends a Markdown text about title.
func appendArticle(dst []byte, r *randStream, lang *language, title string) []byte {
	start := len(dst)
	// Like the words of a language, small sizes come more often.
	size := minArticle + r.below(r.below(maxArticle-3*minArticle)+1)
	dst = append(dst, "# "...)
	dst = append(dst, title...)
	for len(dst)-start < size {
		dst = append(dst, '\n', '\n')
		switch x := r.below(100); {
		case x < 12:
			dst = append(dst, "## "...)
			dst = appendProse(dst, r, lang, r.between(2, 6), false)
		case x < 20:
			for range r.between(2, 5) {
				dst = append(dst, "- "...)
				dst = appendProse(dst, r, lang, r.between(3, 12), false)
				dst = append(dst, '\n')
			}
		case x < 25:
			dst = append(dst, "```\n"...)
			dst = append(dst, pickOne(r, words.Oddities)...)
			dst = append(dst, "\n\tprintf(\"%s\\n\", "...)
			dst = appendCoined(dst, r)
			dst = append(dst, ");\n```"...)
		case x < 30:
			dst = append(dst, "![](https://media.example/"...)
			dst = appendCoined(dst, r)
			dst = append(dst, ".png)"...)
		default:
			dst = appendProse(dst, r, lang, r.between(20, 60), false)
		}
	}
	return dst
}

// slug makes a title into the lower-case, dashed ASCII that d tags use. Case is changed by hand
// here and below: Unicode's tables grow with Go's versions.
func slug(title string) string {
	var out []byte
	for _, c := range []byte(title) {
		switch {
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != '-':
			out = append(out, '-')
		}
	}
	return string(out[:min(len(out), 48)])
}

// appendHashtag appends a hashtag as people write it: some with a capital.
func appendHashtag(dst []byte, r *randStream, hashtag string) []byte {
	dst = append(dst, '#')
	start := len(dst)
	dst = append(dst, hashtag...)
	if r.chance(30) {
		capitalize(dst[start:])
	}
	return dst
}
