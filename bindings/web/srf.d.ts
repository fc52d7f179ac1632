/** How to decode; a key that is missing has the value of the command `srf transcribe`. */
export interface Options {
  /** Width of the beam; 1 is greedy search. */
  beam?: number;
  /** Whether a model with words writes its labels instead. */
  phones?: boolean;
  /** Readings per segment. */
  nBest?: number;
  /** Phrases to favour, each with its score after a colon if it has one. */
  hotwords?: string[];
  /** Whether a pause ends a segment; true unless it is given. */
  endpoints?: boolean;
  /** Whether tokens carry what the routing decided. */
  evidence?: boolean;
  /** Whether a stream keeps softmax and couplings for `takeSlices`. */
  slices?: boolean;
}

/** A model that was opened. */
export interface ModelInfo {
  /** What the classes stand for; `·` for the blank and the padding. */
  labels: string[];
  units: 'phones' | 'chars' | 'words';
  writesWords: boolean;
  canStream: boolean;
  sliceSeconds: number;
  /** How long after a sound its label can be known; null if the model needs the whole recording. */
  delayMs: number | null;
  /** The rate of the model; samples of any rate are accepted. */
  rateHz: number;
  /** The model card, in Markdown. */
  card: string;
}

export interface Timed {
  text: string;
  start_s: number;
  end_s: number;
  /** From 0 to 1. */
  confidence?: number;
}

export interface Token extends Timed {
  evidence?: { posterior: number; coupling_mass: number; runner_up: string; agrees: boolean };
  delay?: { algorithmic_ms: number; buffering_ms: number; compute_ms: number };
}

/** What was said between two endpoints. */
export interface Segment extends Timed {
  words: Timed[];
  tokens: Token[];
  alternatives: { text: string; confidence: number; score: number }[];
  /** Missing while the segment goes on. */
  ended_by?: 'rule1' | 'rule2' | 'rule3' | 'end_of_sentence' | 'flush';
}

export type Format = 'txt' | 'json' | 'srt' | 'vtt' | 'ctm' | 'trn' | 'TextGrid' | 'csv';

/** The result of a recording. */
export class Transcript {
  private constructor();
  readonly id: string;
  readonly text: string;
  readonly duration_s: number;
  readonly segments: Segment[];
  /** What is missing of a recording that was cut off. */
  readonly incomplete?: string;
  /** The transcript as a file. */
  format(name: Format): string;
}

/** An error of the recogniser. */
export class RecognizerError extends Error {
  private constructor();
  /** What to do about it. */
  readonly hint?: string;
}

/** The WebAssembly module: where it is, its bytes, or compiled. */
export type Wasm = string | URL | BufferSource | WebAssembly.Module;

/** A model that is ready to transcribe. */
export class Recognizer {
  private constructor();
  readonly info: ModelInfo;
  /**
   * Loads the model in the folder at `url`, which has a list of its files (`files.json`); the Cache API keeps them.
   * `onProgress` is called with bytes.
   */
  static load(url: string, settings?: { onProgress?: (loaded: number, total: number) => void; wasm?: Wasm }): Promise<Recognizer>;
  /** A model from the files of its directory. */
  static fromFiles(files: Map<string, Uint8Array> | Record<string, Uint8Array>, settings?: { wasm?: Wasm }): Promise<Recognizer>;
  /** Transcribes samples from -1 to 1. */
  transcribe(samples: Float32Array, rateHz: number, options?: Options): Transcript;
  /** Transcribes the bytes of a recording: WAV, FLAC, MP3, Ogg, MP4, Matroska, AIFF or SPHERE. */
  transcribeFile(content: Uint8Array, name?: string, options?: Options): Transcript;
  /** Starts a stream. */
  stream(options?: Options): Stream;
}

/** One speaker's stream, made by `Recognizer.stream`. */
export interface Stream {
  /** Accepts samples from -1 to 1: the segments that ended, and the current one so far. */
  accept(samples: Float32Array, rateHz: number): { finals: Segment[]; partial: Segment | null };
  /** Takes softmax and couplings of the slices since the last call; needs the option `slices`. */
  takeSlices(): { posteriors: Float32Array[]; couplings: Float32Array[] };
  /** Ends the stream: the transcript of all of it. */
  finish(): Transcript;
  /** Frees the memory of the stream, which cannot be used after that. */
  free(): void;
}
