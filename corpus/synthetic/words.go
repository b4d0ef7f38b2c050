package synthetic

// language is what a note is written in. Early words come more often than late ones.
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
	gap: " ", stops: []string{".", ".", ".", ".", "!", "?", "…", ":"}, quotes: [2]string{`"`, `"`}, coined: true,
	words: []string{
		"the", "to", "and", "a", "of", "is", "it", "in", "that", "you", "for", "I", "on", "this", "not", "be", "with", "are", "just",
		"but", "have", "we", "my", "all", "so", "what", "if", "your", "they", "can", "like", "as", "at", "more", "people", "about",
		"from", "no", "will", "one", "or", "do", "me", "how", "time", "an", "good", "out", "by", "now", "up", "get", "when", "there",
		"new", "who", "don't", "some", "it's", "has", "would", "think", "know", "only", "their", "day", "need", "today", "really",
		"why", "make", "use", "want", "them", "than", "even", "see", "been", "still", "work", "great", "never", "first", "then", "world",
		"right", "every", "because", "going", "way", "always", "something", "here", "money", "back", "other", "could", "much", "any",
		"love", "after", "should", "years", "own", "open", "free", "build", "also", "things", "running", "relay", "client", "notes",
		"keys", "posted", "week", "network", "protocol", "night", "coffee", "morning", "friends", "music", "garden", "photo",
		"weather", "train", "book", "story", "question", "answer", "mountain", "river", "children", "kitchen", "bread", "winter",
		"market", "letter", "signal", "machine", "server", "update", "release", "bug", "fixed", "tested", "faster", "slower", "memory",
		"simple", "quiet", "strange", "beautiful", "probably", "honestly", "finally", "somewhere", "tomorrow", "yesterday", "energy",
		"block", "price", "value", "trust", "freedom", "privacy", "community", "thousand", "walking", "reading", "writing",
		"learning", "cooking", "hodl", "sats", "lightning", "node", "wallet", "miner", "halving", "GM", "LFG", "imo", "btw", "lol",
	},
}

var spanish = language{
	gap: " ", stops: []string{".", ".", ".", "!", "?", "…"}, quotes: [2]string{"«", "»"}, coined: true,
	words: []string{
		"de", "la", "que", "el", "en", "y", "a", "los", "se", "no", "un", "por", "con", "una", "para", "es", "lo", "más", "como", "pero",
		"está", "todo", "hoy", "muy", "sin", "sobre", "también", "gente", "mañana", "año", "días", "ahora", "siempre", "nadie", "quién",
		"dónde", "según", "música", "corazón", "café", "niños", "español", "red", "libertad", "dinero", "noche", "camino", "montaña", "¡vamos",
		"pingüino", "canción", "después", "lluvia", "cocina", "verdad", "mundo", "tiempo", "ciudad", "amigos", "gracias",
	},
}

var german = language{
	gap: " ", stops: []string{".", ".", ".", "!", "?", " –"}, quotes: [2]string{"„", "“"}, coined: true,
	words: []string{
		"und", "die", "der", "das", "ist", "nicht", "ich", "es", "ein", "zu", "in", "wir", "auch", "mit", "auf", "für", "so", "man", "aber",
		"noch", "schon", "über", "mehr", "wenn", "heute", "immer", "Leute", "Straße", "Größe", "schön", "natürlich", "vielleicht", "Netzwerk",
		"Freiheit", "Geschwindigkeit", "Schlüssel", "Übertragung", "Zwiebelkuchen", "Donaudampfschifffahrt", "morgen", "Kaffee", "Bäume",
		"Nachricht", "Brötchen", "Gemüse", "Wochenende", "endlich", "draußen", "Fahrrad", "Wald", "Regen", "möglich", "wäre", "könnte",
	},
}

var japanese = language{
	stops: []string{"。", "。", "。", "！", "？", "…", "w"}, quotes: [2]string{"「", "」"},
	words: []string{
		"今日は", "です", "の", "を", "が", "に", "ます", "から", "でも", "とても", "ありがとう", "おはよう", "日本語", "東京", "コーヒー", "ノート", "リレー",
		"ビットコイン", "自由", "面白い", "写真", "天気", "電車", "本当に", "みんな", "新しい", "友達", "明日", "猫", "桜", "食べた", "書いた", "速い",
		"遅い", "眠い", "楽しい", "実装", "鍵", "音楽", "散歩", "夜", "朝", "すごい", "かもしれない", "と思う", "ﾃｽﾄ", "ラーメン", "設定", "見つけた",
	},
}

var chinese = language{
	stops: []string{"。", "。", "。", "！", "？", "……", "；"}, quotes: [2]string{"“", "”"},
	words: []string{
		"的", "是", "我", "在", "不", "了", "有", "和", "人", "这", "中", "大", "为", "上", "个", "我们", "今天", "中文", "比特币", "𠮷野家", "自由", "网络", "协议",
		"消息", "朋友", "早上好", "咖啡", "天气", "音乐", "世界", "时间", "问题", "节点", "钱包", "隐私", "開放", "臺灣", "學習", "時間", "什么", "可以",
		"没有", "因为", "但是", "非常", "已经", "知道", "现在", "觉得", "龍",
	},
}

var arabic = language{
	gap: " ", stops: []string{".", ".", "!", "؟", "…", "،"}, quotes: [2]string{"«", "»"},
	words: []string{
		"في", "من", "على", "إلى", "ما", "لا", "هذا", "أن", "كل", "مع", "هل", "كان", "اليوم", "السلام", "عليكم", "صباح", "الخير", "شكراً", "الحرية",
		"العالم", "شبكة", "مفتاح", "رسالة", "قهوة", "صديق", "جديد", "كتاب", "موسيقى", "مدينة", "وقت", "سؤال", "بيت", "نور", "مُحَمَّد", "اللغة",
		"العربية", "غداً", "أمس", "لماذا", "كيف", "٢٠٢٦", "١٢٣",
	},
}

var emojis = []string{
	"😂", "🔥", "🚀", "❤️", "🤙", "⚡", "🧡", "👀", "💯", "🙏", "😅", "🫡", "🌞", "☕", "🐸", "🎉", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🏴‍☠️", "🇸🇻", "🇯🇵", "🪿", "🥹", "✨",
}

// oddities are what trips careless escaping: quotes, backslashes, markup, tabs, paths, text
// direction marks, combining accents.
var oddities = []string{
	`C:\Users\nostr\keys.txt`, `¯\_(ツ)_/¯`, `\o/`, `"""`, `{"kind":1,"tags":[["e","x"]]}`, `["EVENT","sub",{}]`, `\u0041`, `\\server\share`, `it\'s`,
	"a\tb", `<script>alert("hi")</script>`, "&amp;", "https://example.com/?q=%22a%22&r=\\", "nostr:", "'; DROP TABLE event; --", "e\u0301te\u0301",
	"\u202eright to left\u202c", "zero\u200bwidth", "100%", "$HOME/`date`", "/^\\d+\\s*$/", "a\u00a0b", "“smart” ‘quotes’", "x²+y²≤z²", "∀ε>0 ∃δ",
}

// hashtagWords come in falling popularity, in lower case as t tags hold them (NIP-24).
var hashtagWords = []string{
	"nostr", "bitcoin", "grownostr", "asknostr", "zap", "photography", "plebchain", "introductions", "coffeechain", "art", "music", "memes", "foodstr",
	"news", "nature", "privacy", "opensource", "lightning", "gm", "travel", "books", "gardening", "catstr", "dogstr", "linux", "golang", "rust", "ai",
	"writing", "history", "nostrdev", "relay", "philosophy", "fitness", "running", "economics", "freedom", "homestead", "permaculture", "3dprinting",
	"chess", "poetry", "science", "space", "selfhosted", "cycling", "ビットコイン", "日本語", "写真", "比特币", "中文", "البيتكوين", "español", "música",
	"größe", "deutsch", "café", "winter2026", "100daysofcode", "a-very-long-hashtag-that-somebody-typed-for-fun",
}

// relayNames are the hosts of relays that the corpus mentions, under a domain that cannot exist.
var relayNames = []string{
	"nos", "relay", "relay.one", "relay.two", "eu.relay", "us.relay", "asia.relay", "nostr", "inbox", "outbox", "purple", "orange", "wine", "garden",
	"pyramid", "offchain", "lighthouse", "harbour", "anchor", "mill", "forge", "library", "tavern", "post", "echo", "mirror", "archive", "vault",
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

// syllables make up names and rare words, so that texts have more words than any list.
var syllables = []string{
	"ba", "be", "bi", "bo", "da", "de", "di", "do", "fa", "fe", "ga", "go", "ka", "ke", "ki", "ko", "la", "le", "li", "lo", "ma", "me", "mi", "mo", "na", "ne",
	"ni", "no", "pa", "pe", "ra", "re", "ri", "ro", "sa", "se", "si", "so", "ta", "te", "ti", "to", "va", "ve", "vi", "wa", "we", "ya", "yo", "za", "ze", "zo",
	"shi", "tra", "pla", "gren", "stor", "lum", "quin", "ver", "and", "ost", "ell", "ian",
}
