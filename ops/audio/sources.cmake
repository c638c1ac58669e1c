# Audio: WAV files and spectrograms.
gradflow_op_family(spectrogram USES math/fourier)
gradflow_op_family(wav)
