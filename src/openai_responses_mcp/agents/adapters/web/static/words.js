// What the page says in its own words, in English and in Japanese. Texts from the store are shown as they are.

const english = {
  title: "Approval desk",
  skip: "Skip to the requests",
  waiting: "Waiting",
  log: "Log",
  live: "Live",
  connecting: "Connecting…",
  closed: "No connection. If the desk was closed in the terminal, start it again and use the new link.",
  shut: "This page is not let in any more. Start the desk again in the terminal and use the new link.",
  nothing: "Nothing waits for a decision. Requests appear here as they come in.",
  chooseAll: "Select all",
  choose: "Select",
  chosen: (count) => (count === 1 ? "1 selected" : `${count} selected`),
  several: "Decide several at once",
  approveChosen: "Approve selected",
  denyChosen: "Deny selected",
  arrived: (count, name) => (count === 1 ? `New request: ${name}` : `${count} new requests`),
  risk: (level) => `Risk ${level} of 5`,
  who: "Who asks",
  run: "Run",
  why: "Why it is asked",
  question: "Question",
  asked: "Asked",
  tool: "What the tool is for",
  changed: "The definition of this tool is not what it was when it was last approved",
  willRun: "What will run",
  size: (count) => `${count} characters; scroll to see all of it`,
  comment: "Comment",
  commentHint: "Comment (optional)",
  approve: "Approve",
  deny: "Deny",
  approved: "Approved",
  denied: "Denied",
  elsewhere: "Decided elsewhere, or not asked any more",
  token: "Token that resumes the run",
  expires: "Valid until",
  copy: "Copy the token",
  copied: "Copied",
  dismiss: "Remove from this list",
  loading: "Reading…",
  again: "Try again",
  verify: "Check the log",
  verifying: "Checking the log…",
  intact: "The log is intact",
  broken: "The log is not intact",
  records: (count) => (count === 1 ? "1 record" : `${count} records`),
  accepted: "Accepted losses",
  older: "Show older records",
  arguments: "Arguments",
  headings: ["No", "Time", "Run", "Event", "Decision", "Tool", "Why"],
};

const japanese = {
  title: "承認デスク",
  skip: "リクエストへ移動",
  waiting: "承認待ち",
  log: "ログ",
  live: "接続中",
  connecting: "接続しています…",
  closed: "接続できません。ターミナルでデスクを終了した場合は、もう一度起動して新しいリンクを開いてください。",
  shut: "このページはもう使えません。ターミナルでデスクを起動し直し、新しいリンクを開いてください。",
  nothing: "承認待ちのリクエストはありません。届くとここに表示されます。",
  chooseAll: "すべて選択",
  choose: "選択",
  chosen: (count) => `${count} 件を選択中`,
  several: "まとめて決定",
  approveChosen: "選択分を承認",
  denyChosen: "選択分を却下",
  arrived: (count, name) => (count === 1 ? `新しいリクエスト：${name}` : `新しいリクエスト ${count} 件`),
  risk: (level) => `リスク ${level}／5`,
  who: "依頼元",
  run: "実行",
  why: "確認が必要な理由",
  question: "質問",
  asked: "依頼日時",
  tool: "ツールの説明",
  changed: "このツールの定義は、前回承認されたときから変わっています",
  willRun: "実行される内容",
  size: (count) => `${count} 文字。スクロールすると全体を確認できます`,
  comment: "コメント",
  commentHint: "コメント（任意）",
  approve: "承認",
  deny: "却下",
  approved: "承認しました",
  denied: "却下しました",
  elsewhere: "ほかで決定されたか、取り下げられました",
  token: "実行を再開するトークン",
  expires: "有効期限",
  copy: "トークンをコピー",
  copied: "コピーしました",
  dismiss: "一覧から外す",
  loading: "読み込んでいます…",
  again: "再試行",
  verify: "ログを検証",
  verifying: "ログを検証しています…",
  intact: "ログに改ざんはありません",
  broken: "ログに問題があります",
  records: (count) => `${count} 件の記録`,
  accepted: "承認済みの欠落",
  older: "以前の記録を表示",
  arguments: "引数",
  headings: ["番号", "日時", "実行", "イベント", "決定", "ツール", "理由"],
};

const language = navigator.language.toLowerCase().startsWith("ja") ? "ja" : "en";
export const words = language === "ja" ? japanese : english;

/** The page in the reader's language, as far as its words are ours. */
export function translate() {
  document.documentElement.lang = language;
  for (const place of document.querySelectorAll("[data-word]")) place.textContent = words[place.dataset.word];
}

const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });

/** A moment in the reader's own time zone; a text that is none stays as it is. */
export function moment(text) {
  const parsed = new Date(text);
  return Number.isNaN(parsed.valueOf()) ? text : format.format(parsed);
}

export const number = (value) => new Intl.NumberFormat(language).format(value);
